"""A resumed run is the uninterrupted one, and says no to what it cannot go on from."""

import json
import os
import pathlib
import signal
import time
import unittest

from processes import wait_until
from recipes_test import CPU, WithData

SMALL = (*CPU, "--set", "window.batch_size=2", "--set", "run.timeout=10")
WINDOWS = 20
MOMENTUM = ("--set", "optimizer.name=sgd", "--set", "optimizer.momentum=0.9")
ADAMW = ("--set", "optimizer.name=adamw", "--set", "optimizer.beta1=0.8")


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
        """Each of 19 windows with both optimizers, on 1, 2 and 4 ranks in turn; all of them with TALLY_EVERY_WINDOW=1."""
        all_of_them = os.environ.get("TALLY_EVERY_WINDOW") == "1"
        for optimizer in MOMENTUM, ADAMW:
            for index, ranks in enumerate((1, 2, 4)):
                options = ("--ranks", str(ranks), "--set", "window.shards=4", *optimizer)
                whole = "whole-{}-{}".format(optimizer[1].split("=")[1], ranks)
                self.train(whole, WINDOWS, *options, "--set", "checkpoint.every=1")
                for windows in range(1, WINDOWS):
                    if all_of_them or windows % 3 == index:
                        with self.subTest(run=whole, resumed_after=windows):
                            self.train("parts", WINDOWS, *options, "--resume", step(whole, windows), "--overwrite")
                            self.assert_equal(step(whole, WINDOWS), step("parts", WINDOWS))

    def test_resume_check_compares_every_rank(self):
        result = self.succeed("resume-check", "--json", *SMALL, "--windows", 2, "--ranks", 4, "--set", "window.shards=4")
        document = result.json()
        self.assertTrue(document["equal"])
        self.assertEqual((document["windows"], document["ranks"]), (4, 4))

    def test_the_reference_protocol(self):
        self.succeed("train", "recipes/correct.toml")
        self.succeed("train", "recipes/correct.toml", "--continuous", "--checkpoints", "artifacts/continuous")
        self.succeed("train", "recipes/correct.toml", "--resume", "artifacts/checkpoints/step-0050")
        steps = ("artifacts/continuous/step-0100", "artifacts/checkpoints/step-0100")
        self.assert_equal(*steps)
        self.assertIn("max parameter difference 0\n", self.succeed("checkpoints", "diff", *steps).stdout)
        self.assertEqual([entry["window"] for entry in self.tally.metrics()], list(range(100)), "the first half was kept")

    def test_evaluations_go_on_and_are_those_of_the_checkpoints(self):
        options = ("--set", "evaluate.every=2", "--set", "checkpoint.every=2")
        self.train("whole", 8, *options)
        whole = self.tally.read("outputs/resume/evaluations.jsonl")
        self.train("parts", 4, *options)
        self.train("parts", 8, *options, "--resume", "latest")
        self.assertEqual(self.tally.read("outputs/resume/evaluations.jsonl"), whole)
        self.assert_equal(step("whole", 8), step("parts", 8))
        entries = [json.loads(line) for line in whole.splitlines()]
        self.assertEqual([entry["window"] for entry in entries], [1, 3, 5, 7])
        for entry in entries:
            checkpoint = step("whole", entry["window"] + 1)
            found = self.succeed("evaluate", self.recipe, *SMALL, "--checkpoint", checkpoint, "--split", "validation", "--json").json()
            self.assertEqual((found["loss"], found["measures"]), (entry["loss"], entry["measures"]), "to the bit")

    def test_an_asynchronous_save_has_the_bytes_of_a_synchronous_one(self):
        for folder, value in ("beside", "true"), ("between", "false"):
            self.train(folder, 6, "--set", "checkpoint.every=1", "--set", "checkpoint.async=" + value)
        for windows in range(1, 7):
            self.assert_equal(step("beside", windows), step("between", windows))

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
        self.assertIn("no checkpoint in steps can be resumed: steps/step-0002 is passed over: ", result.sentence())

    def test_another_run_is_refused_with_every_difference(self):
        self.train("steps", 2)
        other = ("--resume", step("steps", 2), "--set", "optimizer.learning_rate=0.01", "--set", "window.accumulation=1")
        sentence = self.train("steps", 4, *other, code=3).sentence()
        self.assertIn("optimizer.learning_rate is 0.05 in the checkpoint and 0.01 here", sentence)
        self.assertIn("window.accumulation is 2 in the checkpoint and 1 here", sentence)
        self.train("steps", 4, *other, "--allow", "optimizer.learning_rate", "--allow", "window.accumulation")

    def test_other_numbers_of_ranks_where_the_states_allow_it(self):
        keyed = ("--set", "window.shards=4", "--set", "rng=keyed")
        self.train("keyed", 2, *keyed, "--ranks", "2")
        self.train("keyed", 4, *keyed, "--ranks", "4", "--resume", "latest")
        self.train("stream", 2, "--set", "window.shards=4", "--ranks", "2")
        result = self.train("stream", 4, "--set", "window.shards=4", "--ranks", "4", "--resume", "latest", code=3)
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

    def test_a_stop_that_takes_too_long_is_ended(self):
        running = self.start("late", "--set", "checkpoint.grace_seconds=2", "--set", "run.timeout=60")
        running.ranks()[1].send(signal.SIGSTOP)
        running.popen.send_signal(signal.SIGTERM)
        began = time.monotonic()
        result = running.finish()
        self.assertLess(time.monotonic() - began, 20)
        self.assert_refused(result, 4, "did not stop and save within 2 s (checkpoint.grace_seconds)")
        self.assertIn("rank 1", result.stderr)

    def test_a_run_stopped_before_its_first_window_goes_on(self):
        """A signal that comes while the ranks start is taken when they can save."""
        running = self.tally.start("train", self.recipe, *SMALL, "--checkpoints", "early")
        self.assertTrue(wait_until(lambda: len(running.ranks()) == 2, 60))
        running.popen.send_signal(signal.SIGTERM)
        result = running.finish()
        self.assertEqual(result.code, 128 + signal.SIGTERM, str(result))
        self.assertEqual(sorted(path.name for path in (self.tally.folder / "early").iterdir()), ["step-0000"])
        self.train("early", 4, "--resume", "latest")
        self.train("whole", 4)
        self.assert_equal(step("whole", 4), step("early", 4))

    def test_a_signal_to_everybody_is_one_stop(self):
        """A service manager signals all processes of a group: each rank hears it twice."""
        running = self.start("group")
        for rank in running.ranks().values():
            rank.send(signal.SIGTERM)
        running.popen.send_signal(signal.SIGTERM)
        self.assertEqual(running.finish().code, 128 + signal.SIGTERM)

    def start(self, folder: str, *arguments: str):
        """A run of 20 windows that has trained two of them."""
        metrics = self.tally.folder / "outputs/resume/metrics.jsonl"
        metrics.unlink(missing_ok=True)
        running = self.tally.start("train", self.recipe, *SMALL, "--checkpoints", folder, "--set", "train.updates=20",
                                   "--set", "train.stop_at=20", "--set", "checkpoint.every=3", *arguments)
        self.assertTrue(wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") >= 2, 60))
        return running

    def flip(self, folder: str) -> None:
        file = pathlib.Path(self.tally.folder) / folder / "model.safetensors"
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(bytes(data))


if __name__ == "__main__":
    unittest.main()
