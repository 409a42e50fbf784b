"""Folders without write permission and full disks: one sentence, and nothing half written."""

import os
import pathlib
import shutil
import subprocess
import unittest

from tally_program import PROGRAM, SOURCE, TallyTest

SMALL = (
    "--set",
    "train.updates=2",
    "--set",
    "window.batch_size=2",
    "--set",
    "run.device=cpu",
    "--set",
    "run.timeout=3",
)
TRAIN = ("train", "recipes/correct.toml", *SMALL)


class NoPermission(TallyTest):
    def lock(self, name: str) -> None:
        folder = self.tally.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o500)
        self.addCleanup(folder.chmod, 0o700)

    def refused(self, arguments, *words: str) -> None:
        result = self.tally.run(*arguments, unprivileged=True, timeout=30)
        self.assert_refused(result, 3, *words, "Permission denied")

    def test_data(self):
        self.lock("data")
        self.refused(("prepare", *SMALL), "data/")
        self.assertEqual(self.tally.files("data"), set())

    def test_outputs(self):
        self.succeed("prepare", *SMALL)
        self.lock("outputs")
        self.refused(TRAIN, "cannot make the folder outputs/correct", "change its permissions")
        self.refused(("reference", *SMALL), "cannot make the folder outputs/gradients")

    def test_log(self):
        self.succeed("prepare", *SMALL)
        self.lock("outputs/correct/logs")
        self.refused(TRAIN, "cannot write the log outputs/correct/logs/rank-0.log", "check the folder's permissions")

    def test_checkpoint(self):
        self.succeed("prepare", *SMALL)
        self.lock("artifacts")
        self.refused(TRAIN, "cannot make the folder artifacts/checkpoints")
        self.assertEqual(self.tally.files("outputs"), set(), "no window was trained in vain")

    def test_unreadable_data(self):
        self.succeed("prepare", *SMALL)
        file = self.tally.folder / "data/tiny_lm.jsonl"
        file.chmod(0)
        self.refused(TRAIN, "data/tiny_lm.jsonl")


class FullDisk(TallyTest):
    def mount(self, name: str, kilobytes: int) -> pathlib.Path:
        """A file system of this size, or a skipped test where the machine lets nobody mount one."""
        folder = self.tally.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        if shutil.which("mount") is None or os.geteuid() != 0:
            self.skipTest("mounting a small tmpfs takes root")
        arguments = ("mount", "-t", "tmpfs", "-o", "size={}k".format(kilobytes), "tmpfs", str(folder))
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest("no tmpfs can be mounted here: {}".format(done.stderr.strip()))
        self.addCleanup(subprocess.run, ("umount", "-l", str(folder)), check=True)
        return folder

    def fill(self, folder: pathlib.Path) -> None:
        with open(folder / "filler", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * 4096)
            except OSError:
                pass

    def refused(self, arguments, *words: str) -> None:
        result = self.tally.run(*arguments, timeout=60)
        self.assert_refused(result, 3, *words, "No space left on device")

    def test_data(self):
        self.mount("data", 128)
        self.refused(("prepare", *SMALL), "data/tiny_lm.jsonl")
        self.assertEqual(self.tally.files("data"), set())

    def test_lock_of_the_data(self):
        self.succeed("prepare", *SMALL)
        size = (self.tally.folder / "data/tiny_lm.jsonl").stat().st_size
        os.rename(self.tally.folder / "data", self.tally.folder / "whole")
        self.mount("data", size // 1024 + 4)
        self.refused(("prepare", *SMALL), "data/")
        self.assertNotIn("windows.jsonl", self.tally.files("data"))

    def test_outputs(self):
        self.succeed("prepare", *SMALL)
        folder = self.mount("outputs", 64)
        (folder / "correct/logs").mkdir(parents=True)
        self.fill(folder)
        self.refused(TRAIN, "outputs/correct")
        self.assertEqual(self.tally.files("artifacts"), set())

    def test_gradients(self):
        self.succeed("prepare", *SMALL)
        self.mount("outputs", 512)
        self.refused(("reference", *SMALL), "outputs/gradients/")
        self.assertFalse(any(name.endswith(".safetensors") for name in self.tally.files("outputs")))

    def test_checkpoint(self):
        self.succeed("prepare", *SMALL)
        self.mount("artifacts", 1800)
        self.succeed(*TRAIN)
        before = self.tally.files("artifacts")
        self.assertIn("checkpoints/step-0002/manifest.sha256", before)
        self.refused((*TRAIN, "--set", "train.updates=3", "--resume", "latest"), "artifacts/checkpoints")
        self.assertEqual(
            self.tally.files("artifacts"), before, "the earlier checkpoint is whole, and nothing is beside it"
        )
        self.succeed("evaluate", "--set", "run.device=cpu")


if __name__ == "__main__":
    print("program {}, source {}".format(PROGRAM, SOURCE))
    unittest.main()
