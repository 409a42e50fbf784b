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
        self.refused('--ranks: "0" is no integer from 1 to 1048576', arguments=("--ranks", "0"))

    def test_negative_ranks(self):
        self.refused("run.ranks = -2 must lie between 1 and", sets=("run.ranks=-2",))
        self.refused('--ranks: "-2" is no integer from 1 to', arguments=("--ranks=-2",))

    def test_ranks_that_are_no_number(self):
        self.refused('--ranks: "two" is no integer from 1 to', arguments=("--ranks", "two"))

    def test_more_ranks_than_shards(self):
        self.refused(
            "--ranks: run.ranks = 3 must be at most window.shards = 2",
            "lower it, raise window.shards, or set run.allow_idle_ranks = true",
            arguments=("--ranks", "3"),
        )

    def test_empty_option(self):
        for option in ("--resume", "--ranks", "-c", "--config", "--checkpoints", "--plugin-path", "--set", "--allow"):
            named = "--config" if option == "-c" else option
            self.refused(named, arguments=(option, ""))
            if option.startswith("--"):
                self.refused("nothing stands after {}=".format(option), arguments=(option + "=",))
                self.refused("nothing stands after {}=".format(option), arguments=(option + "=", "--continuous"))
        self.refused("recipe: the text after it is empty", recipe="")
        self.refused("--resume: the text after it is empty; give one, or leave the option out", arguments=("--resume", ""))
        for arguments in (("compare", "--reference", ""), ("checkpoints", "list", ""), ("doctor", "--plugin-path", "")):
            self.assert_refused(self.tally.run(*arguments, timeout=30), 2, "the text after it is empty")

    def test_plugin_path_that_is_no_folder(self):
        for path in ("nope", "recipes/correct.toml"):
            self.refused("--plugin-path {} is no folder".format(path), arguments=("--plugin-path", path))

    def test_name_that_is_no_file_name(self):
        for name in ("../../x", "/tmp/x", "a/b", "..", ".", "a\x1b[31mb", "a\u202eb", "x" * 101):
            self.refused("--set: name = ", "must", sets=("name=" + name,))
        self.refused('own.toml:1: name = ".." must not begin or end with a dot', recipe=self.shipped(("correct", "..")))
        self.refused("is taken: outputs/gradients is tally's own", sets=("name=gradients",))

    def test_folder_that_is_none(self):
        for key in ("checkpoint.folder", "data.folder"):
            self.refused('--set: {} = "" must not be empty'.format(key), sets=(key + "=",))

    def test_link_that_leads_to_itself(self):
        (self.tally.folder / "loop.toml").symlink_to("loop.toml")
        said = "loop.toml: cannot be read: Too many levels of symbolic links"
        self.refused(said, recipe="loop.toml")
        self.refused(said, arguments=("-c", "loop.toml"))

    def test_nested_so_deep_that_the_stack_would_end(self):
        self.tally.write("own.toml", "\n" + "a." * 16000 + "a = 1\n")
        self.refused("own.toml:2: more than 32 brackets or parts of a key", recipe="own.toml")

    def test_text_of_megabytes(self):
        recipe = self.shipped(more='[run]\nbacked = "{}"\n'.format("x" * 1000000))
        self.refused("own.toml:17: run.backed = ", "(1,000,002 bytes)", 'did you mean "backend"?', recipe=recipe)

    def test_number_that_does_not_fit(self):
        self.refused("seed=9223372036854775808: the number does not fit", sets=("seed=9223372036854775808",))
        self.refused("optimizer.weight_decay = inf is a float, but a finite number", sets=("optimizer.weight_decay=inf",))

    def test_key_that_cannot_be_allowed(self):
        self.refused("--allow optimizer.learning_rat: ", "did you mean optimizer.learning_rate?",
                     arguments=("--allow", "optimizer.learning_rat"))

    def test_unknown_option_and_verb(self):
        for arguments in (("train", "recipes/correct.toml", "--rank", "2"), ("fly",), ()):
            result = self.tally.run(*arguments, timeout=30)
            self.assert_refused(result, 2, "tally --help")
        self.assert_refused(self.tally.run("trian", "x"), 2, "there is no verb 'trian'; did you mean `tally train`?")


if __name__ == "__main__":
    print("program {}, source {}".format(PROGRAM, SOURCE))
    unittest.main()
