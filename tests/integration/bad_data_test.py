"""Data that cannot be trained on: refused with file and line, on every rank alike."""

import json
import unittest

from own_data import LONG, SHORT, TINY, example, lines
from tally_program import PROGRAM, SOURCE, TallyTest

FILE = "data/tiny_lm.jsonl"


class BadLine(TallyTest):
    """The fourth line of a data file is not what it should be."""

    def refused(self, line: str, *words: str):
        good = lines([example(SHORT), example(LONG), example(LONG)])
        self.tally.write(FILE, good + line + "\n" + lines([example(SHORT)]))
        result = self.tally.run("prepare", *TINY, timeout=30)
        self.assert_refused(result, 3, FILE + ":4: ", *words)
        self.assertEqual(self.tally.files("data"), {"tiny_lm.jsonl"}, "nothing is locked")

    def changed(self, **members) -> str:
        return json.dumps({**example(SHORT), **members})

    def test_malformed_json(self):
        self.refused(
            '{"input_ids": [1, 2', "malformed JSON at byte 20", "every line is one object with input_ids, labels"
        )

    def test_line_that_is_no_object(self):
        self.refused("[1, 2, 3]", "the line is an array", "every line is one object")

    def test_token_out_of_range(self):
        ids = example(SHORT)["input_ids"]
        self.refused(self.changed(input_ids=[*ids[:-1], 4]), "input_ids[15] is 4; a token is an integer from 0 to 3")
        self.refused(
            self.changed(labels=[-1, *ids[1:]]), "labels[0] is -1; a token is", "an unsupervised label is -100"
        )

    def test_token_that_is_no_integer(self):
        self.refused(self.changed(input_ids=["a"] * SHORT), 'input_ids[0] is "a"')

    def test_labels_and_ids_of_different_length(self):
        self.refused(self.changed(labels=[0] * 15), "input_ids has 16 values and labels 15; there is one label a token")

    def test_empty_example(self):
        self.refused(self.changed(input_ids=[], labels=[]), "input_ids is empty")

    def test_example_longer_than_the_model(self):
        self.refused(self.changed(input_ids=[0] * 129, labels=[0] * 129), "129 tokens", "positions for 128")

    def test_missing_labels(self):
        self.refused(json.dumps({"input_ids": [1], "split": "train"}), "labels is missing")

    def test_unknown_split(self):
        self.refused(self.changed(split="dev"), 'split is "dev"; it is "train", "validation" or "test"')


class BadFile(TallyTest):
    def test_all_labels_masked(self):
        self.tally.write(FILE, lines([example(SHORT, masked=True), example(LONG, masked=True)]))
        result = self.tally.run("prepare", *TINY, timeout=30)
        self.assert_refused(result, 3, FILE, 'no position of the split "train" is supervised: all labels are -100')

    def test_prompt_that_covers_everything(self):
        self.tally.write(FILE, lines([example(SHORT), example(LONG)]))
        result = self.tally.run("prepare", *TINY, "--set", "task.prompt_length=128", timeout=30)
        self.assert_refused(result, 3, FILE, "task.prompt_length = 128 covers the rest")

    def test_a_split_to_evaluate_without_supervision(self):
        """Found before the first window, not after evaluate.every of them."""
        validation = [{**example(SHORT, masked=True), "split": "validation"}] * 3
        self.tally.write(FILE, lines([example(SHORT), example(LONG), *validation]))
        self.succeed("prepare", *TINY)
        every = ("--set", "evaluate.every=1", "--set", "train.updates=2")
        result = self.tally.run("train", "recipes/correct.toml", *TINY, *every, timeout=60)
        self.assert_refused(result, 3, "the split 'validation' supervises nothing for the term 'loss', so it has no loss")
        self.assertEqual(self.tally.files("artifacts"), set())
        self.assertFalse((self.tally.folder / "outputs/correct/metrics.jsonl").exists())
        self.tally.write(FILE, lines([example(SHORT), example(LONG), *validation, {**example(SHORT), "split": "validation"}]))
        (self.tally.folder / "data/data.lock.json").unlink()
        self.succeed("prepare", *TINY)
        self.succeed("train", "recipes/correct.toml", *TINY, *every, timeout=60)

    def test_no_training_split(self):
        self.tally.write(FILE, lines([{**example(SHORT), "split": "test"}]))
        result = self.tally.run("prepare", *TINY, timeout=30)
        self.assert_refused(result, 3, FILE, 'no example with the split "train"')

    def test_batch_larger_than_a_pool(self):
        self.tally.write(FILE, lines([example(SHORT), example(LONG), example(LONG)]))
        arguments = (*TINY, "--set", "window.batch_size=2")
        words = (
            "--set: window.batch_size = 2 cannot be filled",
            "a window takes 2 examples of length at most 64, but the data has 1;",
            "lower window.batch_size, change sampler.split_length, or add data",
        )
        self.assert_refused(self.tally.run("prepare", *arguments, timeout=30), 2, *words)
        self.succeed("prepare", *TINY)
        result = self.tally.run("train", "recipes/correct.toml", *arguments, timeout=30)
        self.assert_refused(result, 2, *words)
        self.assertEqual(self.tally.files("artifacts"), set())

    def test_unprepared(self):
        result = self.tally.run("train", "recipes/correct.toml", timeout=30)
        self.assert_refused(result, 3, "there is no prepared data in data", "run `tally prepare` first")


class ChangedData(TallyTest):
    def setUp(self):
        super().setUp()
        self.tally.write(FILE, lines([example(SHORT), example(LONG)]))
        self.succeed("prepare", *TINY)

    def assert_noticed(self, *words: str):
        for verb in ("prepare", "train", "reference"):
            arguments = (verb, *(("recipes/correct.toml",) if verb == "train" else ()), *TINY)
            result = self.tally.run(*arguments, timeout=30)
            remedy = ("restore these files, or, to use what is there, remove data.lock.json and run `tally prepare`",)
            self.assert_refused(result, 3, "the data in data is not what was locked: ", *words, *remedy)
        self.assertEqual(self.tally.files("artifacts"), set())

    def test_one_byte_changed(self):
        content = self.tally.read(FILE)
        size = len(content)
        self.tally.write(FILE, content.replace("[0, ", "[1, ", 1))
        said = "tiny_lm.jsonl changed: {} bytes, SHA-256".format(size)
        self.assert_noticed(said, "was locked, {} bytes, SHA-256".format(size), "is there")

    def test_file_removed(self):
        (self.tally.folder / FILE).unlink()
        self.assert_noticed("tiny_lm.jsonl is missing")

    def test_damaged_lock(self):
        self.tally.write("data/data.lock.json", "{")
        result = self.tally.run("train", "recipes/correct.toml", *TINY, timeout=30)
        self.assert_refused(result, 3, "data/data.lock.json")


class EmptyWindow(TallyTest):
    """Data of which a window may draw only unsupervised examples: N = 0 over all ranks."""

    UPDATES = 12

    def setUp(self):
        super().setUp()
        # Example 0 is the only supervised one, and competes with example 1 for the short shard.
        self.tally.write(FILE, lines([example(SHORT), example(SHORT, masked=True), example(LONG, masked=True)]))
        self.arguments = (*TINY, "--set", "train.updates={}".format(self.UPDATES))
        self.succeed("prepare", *self.arguments)
        windows = [json.loads(line) for line in self.tally.read("data/windows.jsonl").splitlines()]
        self.empty = [entry["window"] for entry in windows if entry["shards"] == [[[1]], [[2]]]]
        self.assertEqual(len(windows), self.UPDATES)
        self.assertTrue(0 < len(self.empty) < self.UPDATES, "the seed gives windows of both kinds")

    def test_ends_every_rank(self):
        result = self.tally.run("train", "recipes/correct.toml", *self.arguments, timeout=60)
        said = "window {} has no supervised position on any rank".format(self.empty[0])
        self.assert_refused(result, 3, said, 'set train.on_empty_window = "skip"')
        for rank in (0, 1):
            self.assertIn(said, self.tally.read("outputs/correct/logs/rank-{}.log".format(rank)))
        self.assertNotIn("who was where", result.stderr)

    def test_is_skipped_on_request(self):
        arguments = ("train", "recipes/correct.toml", *self.arguments, "--set", "train.on_empty_window=skip")
        self.succeed(*arguments, timeout=60)
        metrics = self.tally.metrics()
        self.assertEqual([entry["window"] for entry in metrics], list(range(self.UPDATES)))
        counts = [entry["terms"][0]["N"] for entry in metrics]
        self.assertEqual(counts, [0 if window in self.empty else SHORT for window in range(self.UPDATES)])
        # Rank 1 never holds a supervised position, and the loss is learned all the same.
        trained = [entry for entry in metrics if entry["window"] not in self.empty]
        self.assertLess(trained[-1]["loss"], trained[0]["loss"])
        self.assertTrue(all(entry["terms"][0]["n"][1] == 0 for entry in metrics))


if __name__ == "__main__":
    print("program {}, source {}".format(PROGRAM, SOURCE))
    unittest.main()
