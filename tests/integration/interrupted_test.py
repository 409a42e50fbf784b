"""Runs that are killed or stopped at random instants, and go on to the bytes of the run that was let alone.

TALLY_KILLS and TALLY_SIGNALS: how many; TALLY_SEED: at which instants. tests/long/state.sh asks for more than the defaults.
"""

import collections
import hashlib
import json
import os
import pathlib
import random
import re
import signal
import time
import unittest

from processes import wait_until
from recipes_test import CPU, WithData

WINDOWS = 120
RUN = (*CPU, "--set", "window.batch_size=2", "--set", "run.timeout=20", "--set", "checkpoint.every=1", "--set", "evaluate.every=9",
       "--set", "train.updates={}".format(WINDOWS), "--continuous")
# Seconds that a run is left alone, from its start or from its first window.
LONGEST_START = 1.5
LONGEST_TRAINING = 1.2
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


def wanted(name: str, default: int) -> int:
    return int(os.environ.get(name, default))


def window_of(step: pathlib.Path) -> int:
    return int(step.name.removeprefix("step-"))


def steps_in(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.glob("step-*"), key=window_of)


def digests(step: pathlib.Path) -> dict[str, str]:
    """SHA-256 of every file of a step, once it was found to be what the manifest says. Not tally's own reader."""
    manifest = (step / "manifest.json").read_bytes()
    line = (step / "manifest.sha256").read_text()
    if not line.startswith(hashlib.sha256(manifest).hexdigest()):
        raise AssertionError("{}: the manifest is not the one that was signed".format(step))
    found = {}
    for entry in json.loads(manifest)["files"]:
        found[entry["name"]] = hashlib.sha256((step / entry["name"]).read_bytes()).hexdigest()
        if found[entry["name"]] != entry["sha256"]:
            raise AssertionError("{}: {} is damaged".format(step, entry["name"]))
    if {path.name for path in step.iterdir()} != {*found, "manifest.json", "manifest.sha256"}:
        raise AssertionError("{} holds other files than its manifest names".format(step))
    return found


def trained(step: pathlib.Path) -> dict[str, str]:
    """What training decides; the recipe differs by the settings of the saving."""
    return {name: digest for name, digest in digests(step).items() if name.endswith(".safetensors")}


class Interrupted(WithData):
    recipe = "recipes/resume.toml"

    def setUp(self):
        super().setUp()
        self.chance = random.Random(wanted("TALLY_SEED", 1))
        self.counts = collections.Counter()
        self.succeed("train", self.recipe, *RUN, "--checkpoints", "whole")
        self.whole = trained(self.tally.folder / "whole" / "step-{:04d}".format(WINDOWS))

    def start(self, folder: str, *arguments: str):
        """A run, at a random instant: of its start in a quarter of all cases, of its windows and saves in the rest."""
        metrics = self.tally.folder / "outputs/resume/metrics.jsonl"
        metrics.unlink(missing_ok=True)
        running = self.tally.start("train", self.recipe, *RUN, "--checkpoints", folder, "--resume", "latest", *arguments)
        if self.chance.random() < 0.25:
            time.sleep(self.chance.uniform(0.0, LONGEST_START))
        else:
            self.assertTrue(wait_until(lambda: metrics.exists() or running.popen.poll() is not None, 60))
            time.sleep(self.chance.uniform(0.0, LONGEST_TRAINING))
        return running

    def options(self, chain: int) -> tuple[str, ...]:
        """Every kind of saving in turn."""
        keep = ("--set", "checkpoint.keep=2") if chain % 4 >= 2 else ()
        return ("--set", "checkpoint.async={}".format("true" if chain % 2 == 1 else "false"), *keep)

    def interrupt_until(self, number: int, interrupt) -> None:
        """Chains of runs, each interrupted until it ends by itself, until there were so many interruptions."""
        chain = 0
        while self.counts["interruptions"] < number:
            folder = "chain-{}".format(chain)
            while interrupt(folder, self.options(chain)):
                self.counts["interruptions"] += 1
            last = steps_in(self.tally.folder / folder)[-1]
            self.assertEqual(window_of(last), WINDOWS)
            self.assertEqual(trained(last), self.whole)
            chain += 1
        print("{} interruptions in {} runs: {}".format(self.counts.pop("interruptions"), chain, dict(self.counts)), flush=True)

    def test_kills(self):
        self.interrupt_until(wanted("TALLY_KILLS", 60), self.kill)

    def kill(self, folder: str, options: tuple[str, ...]) -> bool:
        """Whether the run was killed before its end."""
        path = self.tally.folder / folder
        running = self.start(folder, *options)
        ranks = list(running.ranks().values())
        victims = self.chance.choice(("one rank", "all ranks", "the launcher")) if ranks else "the launcher"
        before = [window_of(step) for step in steps_in(path)]
        if victims == "the launcher":
            running.popen.send_signal(signal.SIGKILL)
        for rank in {"one rank": [self.chance.choice(ranks or [None])], "all ranks": ranks}.get(victims, []):
            rank.send(signal.SIGKILL)
        result = running.finish()
        if result.code == 0:
            return False
        self.assertEqual(result.code, -signal.SIGKILL if victims == "the launcher" else 4, str(result))
        self.counts[victims] += 1
        self.counts["before the first save"] += not before
        self.counts["within a save"] += any(path.glob(".step-*.partial"))
        after = [window_of(step) for step in steps_in(path)]
        for step in steps_in(path):
            digests(step)
        kept = before if "checkpoint.keep=2" not in options else before[-1:]
        self.assertTrue(all(window in after or after[-1] > window + 1 and "checkpoint.keep=2" in options for window in kept),
                        "steps {} were there, and {} are after the kill".format(before, after))
        return True

    def test_signals(self):
        self.interrupt_until(wanted("TALLY_SIGNALS", 30), self.stop)

    def stop(self, folder: str, options: tuple[str, ...]) -> bool:
        """Whether the run was stopped before its end."""
        path = self.tally.folder / folder
        newest = max((window_of(step) for step in steps_in(path)), default=0)
        running = self.start(folder, *options)
        number = self.chance.choice(SIGNALS)
        ranks = running.ranks()
        target = self.chance.choice((None, *ranks))
        if target is None:
            running.popen.send_signal(number)
        else:
            ranks[target].send(number)
        result = running.finish()
        if result.code == 0:
            return False
        if result.code == -number:
            self.assertEqual(target, None, str(result))
            self.counts["before there were ranks"] += 1
            return True
        self.assertEqual(result.code, 128 + number, str(result))
        self.counts["to the launcher" if target is None else "to one rank"] += 1
        self.require_one_stop(path, number, newest)
        return True

    def require_one_stop(self, path: pathlib.Path, number: int, newest: int) -> None:
        logs = [self.tally.read("outputs/resume/logs/rank-{}.log".format(rank)) for rank in range(2)]
        stops = {int(re.search(r"stopping after (\d+) windows?", log).group(1)) for log in logs}
        self.assertEqual(len(stops), 1, logs)
        stop = stops.pop()
        self.assertEqual(window_of(steps_in(path)[-1]), stop)
        digests(steps_in(path)[-1])
        came = re.findall(r"signal {} came (at window (\d+)|before the first window)".format(int(number)), "".join(logs))
        self.assertNotEqual(came, [], logs)
        for _, window in came:
            # At window w it has w finished ones, and may finish that one and another; between two windows w is finished.
            self.assertLessEqual(stop, int(window) + 3 if window else newest, logs)
        self.counts["stopped {} windows later".format(stop - int(came[0][1]) if came[0][1] else 0)] += 1


if __name__ == "__main__":
    unittest.main()
