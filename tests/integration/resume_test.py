"""A resumed run is the uninterrupted one, and says no to what it cannot go on from."""

import pathlib
import random
import signal
import time
import unittest

from processes import wait_until
from recipes_test import CPU, WithData

SMALL = (*CPU, "--set", "sampler.batch_size=2", "--set", "run.timeout=10")
WINDOWS = 6


def step(folder: str, windows: int) -> str:
    return "{}/step-{:04d}".format(folder, windows)


class Resume(WithData):
    recipe = "recipes/resume.toml"

    def train(self, folder: str, stop_at: int, *arguments: str, code=0):
        result = self.run_tally("train", self.recipe, *SMALL, "--checkpoints", folder, "--set", "train.updates=20",
                                "--set", "train.stop_at={}".format(stop_at), *arguments)
        self.assertEqual(result.code, code, str(result))
        return result

    def run_tally(self, *arguments: str):
        return self.tally.run(*arguments)

    def assert_equal(self, a: str, b: str) -> None:
        result = self.run_tally("checkpoints", "diff", "--json", a, b)
        self.assertEqual(result.code, 0, str(result))
        document = result.json()
        self.assertEqual((document["max_parameter_difference"], document["differences"]), (0.0, []))

    def test_every_window_resumes_to_the_same_bytes(self):
        self.train("whole", WINDOWS, "--set", "checkpoint.every=1")
        for windows in range(1, WINDOWS):
            self.train("parts", WINDOWS, "--resume", step("whole", windows))
            self.assert_equal(step("whole", WINDOWS), step("parts", WINDOWS))

    def test_optimizers_and_ranks(self):
        cases = [(1, "sgd", "optimizer.momentum=0.9"), (4, "sgd", "optimizer.momentum=0.9"), (2, "adamw", "optimizer.beta1=0.8")]
        for ranks, name, option in cases:
            with self.subTest(ranks=ranks, optimizer=name):
                result = self.succeed("resume-check", "--json", *SMALL, "--windows", 2, "--ranks", ranks, "--set", "sampler.shards=4",
                                      "--set", "optimizer.name=" + name, "--set", option)
                document = result.json()
                self.assertTrue(document["equal"])
                self.assertEqual((document["windows"], document["ranks"]), (4, ranks))

    def test_a_state_left_out_is_named(self):
        for recipe, state in (("resume_without_rng", "the CPU's random state"), ("resume_without_sampler", "the sampler's state")):
            with self.subTest(recipe=recipe):
                result = self.run_tally("resume-check", "recipes/{}.toml".format(recipe), "--json", *SMALL, "--windows", "2")
                self.assertEqual(result.code, 1, str(result))
                found = result.json()["differences"]
                for rank in range(2):
                    self.assertTrue(any(line.startswith("rank {}: ".format(rank)) and state in line for line in found), found)

    def test_latest_passes_over_what_is_damaged(self):
        self.train("steps", 4, "--set", "checkpoint.every=2")
        self.flip(step("steps", 4))
        result = self.train("steps", 6, "--resume", "latest")
        self.assertIn("step-0004", result.stderr)
        self.assertIn("model.safetensors", result.stderr)
        self.train("whole", 6)
        self.assert_equal(step("whole", 6), step("steps", 6))

    def test_latest_without_any_starts_at_the_beginning_and_says_so(self):
        result = self.train("none", 2, "--resume", "latest")
        self.assertIn("starting at window 0", result.stderr)

    def test_only_damaged_ones_are_an_error(self):
        self.train("steps", 2)
        self.flip(step("steps", 2))
        result = self.train("steps", 4, "--resume", "latest", code=3)
        self.assertIn("every checkpoint in steps is damaged", result.sentence())

    def test_another_run_is_refused_with_every_difference(self):
        self.train("steps", 2)
        other = ("--resume", step("steps", 2), "--set", "optimizer.learning_rate=0.01", "--set", "sampler.accumulation=1")
        sentence = self.train("steps", 4, *other, code=3).sentence()
        self.assertIn("optimizer.learning_rate is 0.05 in the checkpoint and 0.01 here", sentence)
        self.assertIn("sampler.accumulation is 2 in the checkpoint and 1 here", sentence)
        self.train("steps", 4, *other, "--allow", "optimizer.learning_rate", "--allow", "sampler.accumulation")

    def test_other_numbers_of_ranks_where_the_states_allow_it(self):
        keyed = ("--set", "sampler.shards=4", "--set", "rng=keyed")
        self.train("keyed", 2, *keyed, "--ranks", "2")
        self.train("keyed", 4, *keyed, "--ranks", "4", "--resume", "latest")
        self.train("stream", 2, "--set", "sampler.shards=4", "--ranks", "2")
        result = self.train("stream", 4, "--set", "sampler.shards=4", "--ranks", "4", "--resume", "latest", code=3)
        self.assertIn("'rng_state/1' belongs to the 2 ranks of the checkpoint", result.stderr)

    def test_keep_and_list(self):
        self.train("steps", 5, "--set", "checkpoint.every=1", "--set", "checkpoint.at=[5]", "--set", "checkpoint.keep=2")
        found = sorted(path.name for path in (self.tally.folder / "steps").iterdir())
        self.assertEqual(found, ["step-0004", "step-0005"])
        entries = self.succeed("checkpoints", "list", "steps", "--json").json()["checkpoints"]
        self.assertEqual([(entry["window"], entry["valid"]) for entry in entries], [(5, True), (4, True)])
        self.flip(step("steps", 4))
        result = self.run_tally("checkpoints", "verify", "steps", "--json")
        self.assertEqual(result.code, 3)
        self.assertIn("model.safetensors", result.json()["checkpoints"][1]["reason"])

    def test_a_run_stopped_by_a_signal_goes_on_to_the_same_bytes(self):
        self.train("whole", 20)
        for number in (signal.SIGTERM, signal.SIGUSR1):
            folder = "stopped-{}".format(number)
            self.stop_and_resume(folder, number)
            self.assert_equal(step("whole", 20), step(folder, 20))

    def test_a_stop_that_takes_too_long_is_ended(self):
        running = self.start("late", "--set", "checkpoint.grace_seconds=2", "--set", "run.timeout=60")
        running.ranks()[1].send(signal.SIGSTOP)
        running.popen.send_signal(signal.SIGTERM)
        began = time.monotonic()
        result = running.finish()
        self.assertLess(time.monotonic() - began, 20)
        self.assert_refused(result, 4, "did not stop and save within 2 s (checkpoint.grace_seconds)")
        self.assertIn("rank 1", result.stderr)

    def test_killed_at_random_it_loses_nothing_that_was_saved(self):
        self.train("whole", 20)
        chance = random.Random(1)
        for kill in range(4):
            folder = "killed-{}".format(kill)
            running = self.start(folder)
            time.sleep(chance.uniform(0.0, 2.0))
            ranks = list(running.ranks().values())
            for rank in ranks if kill % 2 == 0 else ranks[-1:]:
                rank.send(signal.SIGKILL)
            running.finish()
            self.train(folder, 20, "--resume", "latest")
            self.assert_equal(step("whole", 20), step(folder, 20))

    def start(self, folder: str, *arguments: str):
        """A run of 20 windows that has trained two of them."""
        metrics = self.tally.folder / "outputs/resume/metrics.jsonl"
        metrics.unlink(missing_ok=True)
        running = self.tally.start("train", self.recipe, *SMALL, "--checkpoints", folder, "--set", "train.updates=20",
                                   "--set", "train.stop_at=20", "--set", "checkpoint.every=3", *arguments)
        self.assertTrue(wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") >= 2, 60))
        return running

    def stop_and_resume(self, folder: str, number: int) -> None:
        running = self.start(folder)
        running.popen.send_signal(number)
        result = running.finish()
        self.assertEqual(result.code, 128 + number, str(result))
        self.train(folder, 20, "--resume", "latest")

    def flip(self, folder: str) -> None:
        file = pathlib.Path(self.tally.folder) / folder / "model.safetensors"
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(bytes(data))


if __name__ == "__main__":
    unittest.main()
