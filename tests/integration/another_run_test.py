"""The files of one run are never taken for those of another, nor lost to it."""

import os
import shutil
import unittest

from processes import wait_until
from recipes_test import CPU, WithData

SMALL = (*CPU, "--set", "window.batch_size=2", "--set", "checkpoint.every=2")


class AnotherRun(WithData):
    def train(self, windows: int, *arguments: str, code=0, stop_at=None):
        result = self.tally.run("train", "recipes/resume.toml", *SMALL, "--checkpoints", "steps", "--set", "train.updates={}".format(windows),
                                "--set", "train.stop_at={}".format(stop_at or windows), *arguments)
        self.assertEqual(result.code, code, result)
        return result

    def steps(self) -> list[str]:
        return sorted(path.name for path in (self.tally.folder / "steps").iterdir())

    def everything(self) -> dict:
        """Content and time of change of each file that a run leaves."""
        files = [path for name in ("steps", "outputs") for path in (self.tally.folder / name).rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    def test_a_new_run_is_refused_and_changes_nothing(self):
        self.train(2)
        before = self.everything()
        for arguments in (), ("--set", "optimizer.learning_rate=0.01"), ("--ranks", "1"):
            result = self.train(2, *arguments, code=2)
            self.assertIn("steps holds step-0002 of an earlier run: go on from it with --resume latest, let this run take its place "
                          "with --overwrite, or name another folder with --checkpoints", result.sentence())
        self.assertEqual(self.everything(), before)
        others_may_read = (self.tally.folder / "outputs/resume").stat().st_mode & 0o055
        self.assertEqual(others_may_read, 0o055 & ~self.umask())

    @staticmethod
    def umask() -> int:
        mask = os.umask(0)
        os.umask(mask)
        return mask

    def test_overwrite_takes_the_whole_place(self):
        self.train(6)
        self.train(3, "--overwrite", "--set", "seed=5")
        self.assertEqual(self.steps(), ["step-0002", "step-0003"])
        sentence = self.train(6, "--overwrite", "--resume", "latest", "--set", "seed=5", code=2).sentence()
        self.assertIn("give one of the two", sentence)
        self.train(6, "--overwrite", "--resume", "steps/step-0002", "--set", "seed=5", code=2)
        self.assertEqual(self.steps(), ["step-0002", "step-0003"])

    def test_a_step_from_elsewhere_does_not_mix_in(self):
        self.train(2)
        shutil.copytree(self.tally.folder / "steps/step-0002", self.tally.folder / "elsewhere/step-0002")
        self.train(4, "--overwrite", "--set", "seed=5")
        self.train(6, "--resume", "elsewhere/step-0002", code=2)
        self.train(6, "--resume", "elsewhere/step-0002", "--overwrite")
        self.assertEqual(self.steps(), ["step-0004", "step-0006"])

    def test_latest_follows_the_run_that_went_back(self):
        self.train(8)
        self.train(8, "--resume", "steps/step-0002", stop_at=3)
        self.assertEqual(self.steps(), ["step-0002", "step-0003", "step-0004", "step-0006", "step-0008"])
        result = self.train(8, "--resume", "latest", stop_at=5)
        self.assertIn("resumed from steps/step-0003 after 3 windows", self.tally.read("outputs/resume/logs/rank-0.log"))
        for left in 4, 6, 8:
            self.assertIn("steps/step-000{} is passed over: the run went on from window 2 without it".format(left), result.stderr)

    def test_latest_is_of_the_run_under_these_conditions(self):
        """Steps of two runs in one folder come there only by hand."""
        rate = "optimizer.learning_rate"
        self.train(2)
        shutil.move(self.tally.folder / "steps", self.tally.folder / "first")
        self.train(4, "--set", rate + "=0.01")
        shutil.rmtree(self.tally.folder / "steps/step-0002")
        shutil.copytree(self.tally.folder / "first/step-0002", self.tally.folder / "steps/step-0002")
        sentence = self.train(6, "--resume", "latest", "--allow", rate, "--set", rate + "=0.02", code=3).sentence()
        self.assertIn("steps/step-0004 and steps/step-0002 are of two runs, of which none went on from the other", sentence)
        result = self.train(3, "--resume", "latest")
        self.assertIn("steps/step-0004 is passed over: it is of another run", result.stderr)
        self.assertIn("resumed from steps/step-0002", self.tally.read("outputs/resume/logs/rank-0.log"))

    def test_nothing_is_left_to_do_at_the_end(self):
        self.train(4)
        before = self.everything()
        for windows, arguments in ((4, ("--resume", "latest")), (3, ("--resume", "steps/step-0004"))):
            result = self.train(windows, "--json", *arguments)
            self.assertEqual((result.json()["windows_run"], result.json()["loss"]), (0, None))
            self.assertIn("nothing was left to do: the run ends after {} windows".format(windows), result.json()["remark"])
            self.assertIn("nothing was left to do", self.train(windows, *arguments).stdout)
        self.assertEqual(self.everything(), before)

    def test_two_at_once_are_noticed(self):
        running = self.tally.start("train", "recipes/resume.toml", *SMALL, "--checkpoints", "steps", "--set", "train.updates=100000",
                                   "--continuous", "--set", "checkpoint.keep=2")
        metrics = self.tally.folder / "outputs/resume/metrics.jsonl"
        self.assertTrue(wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") >= 2, 60))
        self.assertIn("another tally works in outputs/resume; wait for its end", self.train(2, "--resume", "latest", code=3).sentence())
        other = self.tally.run("train", "recipes/correct.toml", *SMALL, "--checkpoints", "steps", "--overwrite")
        self.assert_refused(other, 3, "another tally works in steps; wait for its end")
        running.popen.terminate()
        self.assertEqual(running.finish().code, 128 + 15)


if __name__ == "__main__":
    unittest.main()
