#!/usr/bin/env python3
"""Compares the gradients of wrong.toml and correct.toml with the reference for many seeds, and prints a table.

Usage, in a folder with prepared data:  parity_seeds.py PROGRAM RECIPES [--seeds 20] [further arguments of `tally compare`]
Ends with 1 unless for every seed correct has no value out of tolerance and an error of at most 2^-23 of the largest reference
value, and wrong fails with an error of at least 1e-3.
"""
import argparse
import json
import pathlib
import subprocess
import sys


def compare(program, recipes, seed, further):
    command = [program, "compare", "--json", "--set", f"seed={seed}", "--reference", str(recipes / "reference.toml"),
               "--must-pass", str(recipes / "correct.toml"), "--must-fail", str(recipes / "wrong.toml"), *further]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 1):
        sys.exit(f"seed {seed}: exit code {done.returncode}: {done.stderr}")
    return {recipe["name"]: recipe for recipe in json.loads(done.stdout)["recipes"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("recipes", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=20)
    arguments, further = parser.parse_known_args()
    good = True
    print("| seed | values | correct: out of tolerance | correct: max error | of the largest value | wrong: max error |")
    print("| --- | --- | --- | --- | --- | --- |")
    for seed in range(1, arguments.seeds + 1):
        rows = compare(arguments.program, arguments.recipes, seed, further)
        correct, wrong = rows["correct"], rows["wrong"]
        share = correct["max_abs_error"] / correct["max_reference"]
        good = good and correct["pass"] and correct["out_of_tolerance"] == 0 and share <= 2.0 ** -23
        good = good and not wrong["pass"] and wrong["max_abs_error"] >= 1e-3
        print(f"| {seed} | {correct['values']:,} | {correct['out_of_tolerance']} | {correct['max_abs_error']:.3e} "
              f"| 2^-23 * {share * 2.0 ** 23:.2f} | {wrong['max_abs_error']:.3e} |", flush=True)
    print("all as promised" if good else "NOT as promised")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
