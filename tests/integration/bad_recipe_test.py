"""Recipes and options that cannot be right: refused with one sentence before anything is written."""

import unittest

from tally_program import PROGRAM, SOURCE, TallyTest


class BadRecipe(TallyTest):
    def refused(self, *words: str, sets=(), recipe="recipes/correct.toml", arguments=()):
        """`train` ends with exit code 2 and these words, and writes nothing."""
        options = [text for value in sets for text in ("--set", value)]
        result = self.tally.run("train", recipe, *options, *arguments, timeout=30)
        self.assert_refused(result, 2, *words)
        self.assertFalse((self.tally.folder / "outputs").exists(), result)
        self.assertFalse((self.tally.folder / "artifacts").exists(), result)

    def shipped(self, replace=("", ""), more="") -> str:
        """A recipe in the test's own folder: the shipped correct.toml with a change."""
        text = (SOURCE / "recipes/correct.toml").read_text().replace("../configs", "configs")
        self.tally.write("own.toml", text.replace(*replace) + more)
        return "own.toml"

    def test_unknown_key_in_a_set(self):
        self.refused("train.update = 3", "no known key of [train]", 'did you mean "updates"?', sets=("train.update=3",))

    def test_unknown_key_in_a_file(self):
        recipe = self.shipped(('plugin = "tiny_lm"', 'plugin = "tiny_lm"\ndropuot = 0.1'))
        self.refused("own.toml:6: task.dropuot = 0.1", "[task]", 'did you mean "dropout"?', recipe=recipe)

    def test_unknown_section(self):
        recipe = self.shipped(more="[optimiser]\nlearning_rate = 0.1\n")
        self.refused("own.toml:16: [optimiser]", "did you mean [optimizer]?", recipe=recipe)

    def test_wrong_type(self):
        self.refused('--set: train.updates = "ten" is a string', "an integer was expected", sets=("train.updates=ten",))

    def test_wrong_type_in_a_file(self):
        recipe = self.shipped(more="[run]\nallow_idle_ranks = 1\n")
        self.refused("own.toml:17: run.allow_idle_ranks = 1 is an integer", "true or false was expected", recipe=recipe)

    def test_value_that_is_no_choice(self):
        self.refused('train.on_empty_window = "stop" must be "error" or "skip"', sets=("train.on_empty_window=stop",))

    def test_malformed_toml(self):
        self.refused("own.toml:16: is no TOML", "expected ']'", recipe=self.shipped(more="[run\n"))

    def test_missing_recipe(self):
        self.refused("nowhere.toml: cannot be read: No such file or directory", recipe="nowhere.toml")

    def test_two_samplers(self):
        recipe = self.shipped(("[sampler]", "[[sampler]]"), more='[[sampler]]\nplugin = "rank_split"\n')
        self.refused(
            "own.toml:6: [[sampler]] is an array of tables, but one table was expected",
            "write [sampler]",
            recipe=recipe,
        )

    def test_no_sampler(self):
        recipe = self.shipped(('[sampler]\nplugin = "rank_split"\n', ""))
        self.refused("[sampler] names no plugin", 'plugin = "NAME"', recipe=recipe)

    def test_state_provided_twice(self):
        recipe = self.shipped(more='[[state]]\nplugin = "rng_state"\n')
        self.refused(
            "own.toml:16", "the state 'rng_state/1' is provided twice", "leave one [[state]] out", recipe=recipe
        )

    def test_no_ranks(self):
        self.refused("run.ranks = 0 must lie between 1 and", arguments=("--ranks", "0"))

    def test_negative_ranks(self):
        self.refused("run.ranks = -2 must lie between 1 and", sets=("run.ranks=-2",))
        self.refused("run.ranks = -2 must lie between 1 and", arguments=("--ranks=-2",))

    def test_ranks_that_are_no_number(self):
        self.refused('run.ranks = "two" is a string, but an integer was expected', arguments=("--ranks", "two"))

    def test_more_ranks_than_shards(self):
        self.refused(
            "run.ranks = 3 must be at most window.shards = 2",
            "lower it, raise window.shards, or set run.allow_idle_ranks = true",
            arguments=("--ranks", "3"),
        )

    def test_unknown_option_and_verb(self):
        for arguments in (("train", "recipes/correct.toml", "--rank", "2"), ("fly",), ()):
            result = self.tally.run(*arguments, timeout=30)
            self.assert_refused(result, 2, "tally --help")
        self.assert_refused(self.tally.run("trian", "x"), 2, "there is no verb 'trian'; did you mean `tally train`?")


if __name__ == "__main__":
    print("program {}, source {}".format(PROGRAM, SOURCE))
    unittest.main()
