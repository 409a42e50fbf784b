"""Plugins that cannot be used: refused before they run, with what is wrong and what to do."""

import os
import pathlib
import shutil
import unittest

from tally_program import PROGRAM, SOURCE, TallyTest

SHIPPED = PROGRAM.parent.parent / "lib/tally/plugins"
BROKEN = pathlib.Path(os.environ["TALLY_BAD_PLUGINS"])  # one broken plugin a failure
FALSE_POLICIES = pathlib.Path(os.environ["TALLY_TEST_PLUGINS"])
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


class BadPlugin(TallyTest):
    def setUp(self):
        super().setUp()
        self.plugins = self.tally.folder / "plugins"
        self.plugins.mkdir()

    def put(self, source: pathlib.Path) -> pathlib.Path:
        """A plugin of the name token_mean, which --plugin-path prefers to the shipped one."""
        return pathlib.Path(shutil.copy(source, self.plugins / "token_mean.so"))

    def refused(self, code: int, *words: str, arguments=("--plugin-path", "plugins")):
        """`train` ends with the exit code and these words, and writes nothing."""
        result = self.tally.run("train", "recipes/correct.toml", *arguments, timeout=30)
        self.assert_refused(result, code, *words)
        self.assertFalse((self.tally.folder / "outputs").exists(), result)

    def test_missing_plugin(self):
        words = ('recipes/correct.toml:4: plugin "tiny_lmm" was not found', "searched plugins, ", "--plugin-path")
        self.refused(5, *words, arguments=("--set", "task.plugin=tiny_lmm", "--plugin-path", "plugins"))

    def test_missing_file(self):
        words = (
            'plugin "./mine.so" was not found: there is no mine.so',
            "a path is relative to the file that wrote it",
        )
        self.refused(5, *words, arguments=("--set", "task.plugin=./mine.so"))

    def test_plugin_of_another_stamp(self):
        file = self.put(SHIPPED / "token_mean.so")
        content = file.read_bytes()
        self.assertIn(b"torch=2.11", content)
        file.write_bytes(content.replace(b"torch=2.11", b"torch=2.10"))
        words = ("token_mean.so was not built for this program", "torch is 2.10", "in the plugin and 2.11")
        self.refused(5, *words, "rebuild it with tally_add_plugin()")

    def test_no_stamp(self):
        self.put(BROKEN / "bad_no_stamp.so")
        self.refused(5, "token_mean.so carries no tally stamp", "TALLY_PLUGIN")

    def test_no_descriptor(self):
        self.put(BROKEN / "bad_no_descriptor.so")
        self.refused(5, "token_mean.so exports no tally_plugin_v1", "TALLY_PLUGIN")

    def test_unresolved_symbol(self):
        self.put(BROKEN / "bad_missing_symbol.so")
        self.refused(5, "token_mean.so cannot be loaded", "undefined symbol: nobody_defines_this")

    def test_truncated(self):
        file = self.put(SHIPPED / "token_mean.so")
        size = file.stat().st_size
        for kept in (size - 1, size // 2, 1000):
            os.truncate(file, kept)
            self.refused(5, "token_mean.so is truncated: it has {} bytes".format(kept), "copy or build it again")
        os.truncate(file, 0)
        self.refused(5, "token_mean.so is an empty file", "copy or build it again")

    def test_no_library(self):
        self.tally.write("plugins/token_mean.so", "not even a library\n" * 10)
        self.refused(5, "plugins/token_mean.so", "ELF")

    def test_hook_that_the_plugin_lacks(self):
        words = (
            '[sampler] asks for the hook "other", which plugin rank_split 0.1.0 lacks',
            'it offers sampler "rank_split"',
        )
        self.refused(2, *words, 'hook = "NAME"', arguments=("--set", "sampler.hook=other"))

    def test_plugin_of_another_kind(self):
        words = ("[sampler] needs a sampler", 'plugin token_mean 0.1.0 offers only loss_reducer "token_mean"')
        self.refused(2, "recipes/correct.toml:6", *words, arguments=("--set", "sampler.plugin=token_mean"))


class FalseDivisor(TallyTest):
    """A policy whose divisor is not what it does is found before the first window."""

    def train(self, policy: str):
        self.succeed("prepare", *SMALL)
        arguments = ("--plugin-path", FALSE_POLICIES, "--set", "sync_policy.plugin=" + policy)
        return self.tally.run("train", "recipes/correct.toml", *SMALL, *arguments, timeout=60)

    def assert_found(self, policy: str, *words: str):
        result = self.train(policy)
        self.assert_refused(result, 5, 'sync_policy "{}"'.format(policy), *words, "correct its divisor()")
        self.assertNotIn("who was where", result.stderr)
        for rank in (0, 1):
            self.assertIn(words[0], self.tally.read("outputs/correct/logs/rank-{}.log".format(rank)))
        self.assertEqual(self.tally.files("artifacts"), set())

    def test_says_one_and_averages(self):
        self.assert_found("says_sum_takes_mean", "divides the sum over 2 ranks by 1", "must leave 45", "holds 22.5")

    def test_says_world_and_reduces_nothing(self):
        self.assert_found("never_reduces", "divides the sum over 2 ranks by 2", "must leave 22.5", "rank 0 holds 15;")


if __name__ == "__main__":
    print("program {}, source {}".format(PROGRAM, SOURCE))
    unittest.main()
