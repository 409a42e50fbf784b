#!/usr/bin/env python3
"""Prints the table that scripts/demo ends with, from what the program left in the outputs folder."""
import json
import pathlib
import sys


def read(file):
    return json.loads(file.read_text())


def main():
    outputs = pathlib.Path(sys.argv[1])
    recipes = {recipe["name"]: recipe for recipe in read(outputs / "compare.json")["recipes"]}
    titles = ["recipe", "gradient", "values", "max |d|", "out of tolerance", "train loss", "test loss", "accuracy"]
    rows = []
    for name in ("wrong", "correct"):
        gradient, summary, test = recipes[name], read(outputs / name / "summary.json"), read(outputs / name / "evaluation.json")
        measures = test["measures"]
        reachable = measures.get("best_reachable_loss", {}).get("mean")
        rows.append([name, "as one device" if gradient["pass"] else "WRONG", f"{gradient['values']:,}",
                     f"{gradient['max_abs_error']:.1e}", f"{gradient['out_of_tolerance']:,}", f"{summary['loss']:.4f}",
                     f"{test['loss']:.4f}", f"{measures['accuracy']['mean']:.3f}"])
    widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]
    for row in [titles, ["-" * width for width in widths], *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    if reachable is not None:
        print(f"best reachable test loss: {reachable:.4f} (the entropy of the rule that made the data)")


if __name__ == "__main__":
    main()
