"""What the shipped recipes promise: the numbers of one device, on any number of ranks."""

import itertools
import json
import shutil
import unittest

from safetensors_file import read_floats
from tally_program import PROGRAM, SOURCE, TallyProgram, TallyTest

VALUES = 282_628
CPU = ("--set", "run.device=cpu")
SHORT = (*CPU, "--set", "train.updates=3", "--set", "window.batch_size=2")


def with_data(test: type[TallyTest], *arguments: str) -> TallyProgram:
    """A folder with prepared data that lives as long as the tests of a class."""
    tally = TallyProgram()
    test.addClassCleanup(tally.close)
    result = tally.run("prepare", *arguments)
    if result.code != 0:
        raise AssertionError(str(result))
    return tally


class WithData(TallyTest):
    @classmethod
    def setUpClass(cls):
        cls.prepared = with_data(cls)

    def setUp(self):
        super().setUp()
        (self.tally.folder / "data").symlink_to(self.prepared.folder / "data")

    def assert_close(self, found: list[float], expected: list[float], tolerance=1e-6) -> None:
        self.assertEqual(len(found), len(expected))
        for window, (value, wanted) in enumerate(zip(found, expected)):
            self.assertLessEqual(abs(value - wanted), tolerance * abs(wanted), "window {}".format(window))


class EqualOnAnyNumberOfRanks(WithData):
    def train(self, ranks: int, *arguments: str) -> list[float]:
        sets = (*CPU, "--set", "window.shards=4", "--continuous")
        self.succeed("train", "recipes/correct.toml", "--ranks", ranks, "--overwrite", *sets, *arguments)
        return self.tally.losses()

    def test_same_losses_and_a_model_that_learned(self):
        one = self.train(1)
        self.assertEqual(len(one), 100)
        self.assertGreater(one[0], 1.3)  # four tokens, nothing learned: ln 4 = 1.386
        for ranks in (4, 2):
            self.assert_close(self.train(ranks), one)
            self.assertEqual(len(self.tally.metrics()[0]["terms"][0]["n"]), ranks)
        # The checkpoint is that of the last of these runs.
        document = self.succeed("evaluate", "--json", *CPU).json()
        self.assertEqual((document["window"], document["sequences"]), (100, 256))
        self.assertGreater(document["measures"]["accuracy"]["mean"], 0.5)
        self.assertGreater(document["loss"], document["measures"]["best_reachable_loss"]["mean"])
        self.assertLess(document["loss"], 1.1)

    def test_wrong_recipe_gives_other_losses(self):
        """The test above can fail: a reducer that counts locally depends on the number of ranks."""
        losses = []
        for ranks in (1, 2):
            self.succeed("train", "recipes/wrong.toml", "--ranks", ranks, "--overwrite", *SHORT)
            losses.append(self.tally.losses("wrong"))
        differences = [abs(one - two) / one for one, two in zip(*losses)]
        self.assertGreater(max(differences), 1e-3)


class StoredRecipe(WithData):
    def test_runs_again_to_the_same_bits(self):
        changes = (
            "--set",
            "optimizer.learning_rate=0.07",
            "--set",
            "seed=5",
            "--ranks",
            "2",
            "--set",
            "optimizer.momentum=0.5",
        )
        self.succeed("train", "recipes/correct.toml", *SHORT, *changes)
        with TallyProgram() as again:
            for name in ("recipes", "configs"):
                (again.folder / name).unlink()  # all that matters is in the stored recipe
            (again.folder / "data").symlink_to(self.prepared.folder / "data")
            shutil.copy(self.tally.folder / "outputs/correct/recipe.toml", again.folder / "stored.toml")
            result = again.run("train", "stored.toml")
            self.assertEqual(result.code, 0, result)
            self.assertEqual(again.losses(), self.tally.losses())
            self.assertEqual(len(again.losses()), 3)
            norms = [[entry["gradient_norm"] for entry in run.metrics()] for run in (again, self.tally)]
            self.assertEqual(norms[0], norms[1])
            step = "artifacts/checkpoints/step-0003/"
            for name in ("model.safetensors", "optimizer.safetensors", "rank-0.safetensors", "recipe.toml"):
                files = [run.folder / step / name for run in (again, self.tally)]
                self.assertEqual(files[0].read_bytes(), files[1].read_bytes(), name)


class Masked(TallyTest):
    """masked.toml: a prompt of 8, labels that are the inputs, keyed dropout."""

    @classmethod
    def setUpClass(cls):
        cls.prepared = with_data(cls, "recipes/masked.toml", *SHORT)

    def setUp(self):
        super().setUp()
        (self.tally.folder / "data").symlink_to(self.prepared.folder / "data")

    def train(self, ranks: int, *arguments: str) -> list[dict]:
        self.succeed("train", "recipes/masked.toml", "--ranks", ranks, "--overwrite", *SHORT, *arguments)
        return self.tally.metrics("masked")

    def lengths_of_first_window(self) -> list[int]:
        """Tokens of each shard's examples in window 0."""
        examples = [json.loads(line) for line in self.tally.read("data/tiny_lm.jsonl").splitlines()]
        lengths = [len(entry["input_ids"]) for entry in examples if entry["split"] == "train"]
        window = json.loads(self.tally.read("data/windows.jsonl").splitlines()[0])
        return [sum(lengths[i] for microbatch in shard for i in microbatch) for shard in window["shards"]]

    def test_count_and_length_differ(self):
        tokens = self.lengths_of_first_window()
        (term,) = self.train(2)[0]["terms"]
        # Each of a shard's 2 * 2 sequences loses its prompt, and its last token has no target.
        self.assertEqual(term["n"], [shard - 4 * 9 for shard in tokens])
        self.assertEqual(term["N"], sum(term["n"]))
        self.assertLess(term["N"], sum(tokens))

    def test_keyed_dropout_does_not_depend_on_the_ranks(self):
        losses = [[entry["loss"] for entry in self.train(ranks)] for ranks in (1, 2)]
        self.assertEqual(len(losses[0]), 3)
        for one, two in zip(*losses):
            self.assertLessEqual(abs(one - two), 1e-6 * one)
        # The dropout is there, and a stream of numbers for each rank would differ.
        stream = [[entry["loss"] for entry in self.train(ranks, "--set", "rng=stream")] for ranks in (1, 2)]
        self.assertGreater(max(abs(one - two) for one, two in zip(*stream)), 1e-4)


class Compare(WithData):
    def compare(self, *arguments: str, code=0) -> dict[str, dict]:
        result = self.tally.run("compare", "--json", *CPU, *arguments)
        self.assertEqual(result.code, code, result)
        return {recipe["name"]: recipe for recipe in result.json()["recipes"]}

    def gradient(self, recipe: str) -> dict:
        tensors, _ = read_floats(self.tally.folder / "outputs/gradients/{}.safetensors".format(recipe))
        return {name: values for name, values in tensors.items() if not name.startswith("window-0/shard-")}

    def recomputed(self, recipe: str) -> dict:
        """The numbers of one line of the table, from the files alone."""
        reference, found = self.gradient("one-rank/correct"), self.gradient(recipe)
        self.assertEqual((len(reference), found.keys()), (30, reference.keys()))
        flat = [
            list(itertools.chain.from_iterable(gradient[name] for name in reference)) for gradient in (reference, found)
        ]
        errors = [abs(value - wanted) for wanted, value in zip(*flat)]
        sizes = [abs(wanted) for wanted in flat[0]]
        return {
            "values": len(errors),
            "max_abs_error": max(errors),
            "max_rel_error": max(error / max(size, 1e-6) for error, size in zip(errors, sizes)),
            "max_reference": max(sizes),
            "out_of_tolerance": sum(error > 1e-6 + 1e-4 * size for error, size in zip(errors, sizes)),
        }

    def test_seeds_and_an_independent_recomputation(self):
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                rows = self.compare("--set", "seed={}".format(seed))
                correct, wrong = rows["correct"], rows["wrong"]
                self.assertEqual((correct["values"], wrong["values"]), (VALUES, VALUES))
                self.assertEqual((correct["out_of_tolerance"], correct["pass"]), (0, True))
                self.assertLessEqual(correct["max_abs_error"], 2**-23 * correct["max_reference"])
                self.assertGreaterEqual(wrong["max_abs_error"], 1e-3)
                self.assertGreater(wrong["out_of_tolerance"], VALUES // 2)
                self.assertFalse(wrong["pass"])
                self.assertIn("local instead of global count", wrong["diagnosis"])
        for name, row in rows.items():
            for key, value in self.recomputed(name).items():
                self.assertAlmostEqual(row[key], value, delta=1e-12 * abs(value), msg=(name, key))

    def test_wrong_recipe_that_must_pass(self):
        result = self.tally.run("compare", "--must-pass", "recipes/wrong.toml", *SHORT)
        self.assertEqual(result.code, 1, result)
        self.assertRegex(result.stdout, r"wrong .* fail +pass")

    def test_every_recipe_is_measured_against_itself_on_one_rank(self):
        """masked.toml shares neither examples nor dropout with wrong.toml, which then shows nothing about it."""
        self.tally.write("own.toml", self.tally.read("recipes/masked.toml").replace("../configs", "configs").replace('"masked"', '"own"'))
        document = self.succeed("compare", "--json", "--must-pass", "own.toml", "--must-pass", "recipes/correct.toml", *SHORT).json()
        rows = [(row["name"], row["reference"], row["pass"], row["max_abs_error"]) for row in document["recipes"]]
        self.assertEqual(rows, [("own", "own", True, 0), ("correct", "correct", True, 0)])
        (remark,) = document["remarks"]
        self.assertIn('recipes/wrong.toml is no known error of own.toml: rng is "keyed" here and "stream" there; name one with --must-fail', remark)
        _, metadata = read_floats(self.tally.folder / "outputs/gradients/one-rank/own.safetensors")
        self.assertEqual((json.loads(metadata["run"])["world"], json.loads(metadata["run"])["shards"]), (1, 2))

    def test_the_reference_can_be_named(self):
        rows = self.compare("--reference", "recipes/reference.toml", "--must-pass", "recipes/wrong.toml", "--must-fail",
                            "recipes/wrong.toml", *SHORT, code=1)
        self.assertEqual((rows["wrong"]["reference"], rows["wrong"]["pass"]), ("reference", False))

    def test_tolerances_decide_what_is_out(self):
        """A lossy policy needs a larger one, and the known error must be seen beside it."""
        largest = self.compare(*SHORT)["wrong"]["max_abs_error"]
        just_wide_enough = self.compare("--absolute-tolerance", "{:.17g}".format(1.001 * largest), *SHORT, code=1)
        self.assertEqual(just_wide_enough["wrong"]["out_of_tolerance"], 0)
        too_narrow = self.compare("--absolute-tolerance", "{:.17g}".format(0.999 * largest), "--relative-tolerance", "0", *SHORT)
        self.assertGreaterEqual(too_narrow["wrong"]["out_of_tolerance"], 1)
        for value in ("-1", "nan", "inf", "x", ""):
            result = self.tally.run("compare", "--relative-tolerance", value)
            self.assert_refused(result, 2, "--relative-tolerance")

    def test_a_set_that_no_recipe_knows(self):
        result = self.tally.run("compare", "--set", "loss_reducer.factor=2")
        self.assert_refused(result, 2, "loss_reducer.factor = 2 is no known key of [loss_reducer]")

    def test_correct_recipe_that_must_fail(self):
        rows = self.compare("--must-fail", "recipes/correct.toml", *SHORT, code=1)
        self.assertTrue(rows["correct"]["pass"])

    def test_idle_rank_keeps_the_gradient(self):
        """More ranks than shards, when that is allowed: the third rank takes part with a zero gradient."""
        rows = self.compare("--ranks", "3", "--set", "run.allow_idle_ranks=true", *SHORT)
        self.assertEqual(rows["correct"]["out_of_tolerance"], 0)
        # Times 3 and divided by 3 rounds twice, where 2 ranks round nowhere.
        self.assertLessEqual(rows["correct"]["max_abs_error"], 2**-20 * rows["correct"]["max_reference"])
        _, metadata = read_floats(self.tally.folder / "outputs/gradients/correct.safetensors")
        run = json.loads(metadata["run"])
        self.assertEqual((run["world"], run["windows"][0]["counts_by_rank"][2]), (3, 0))

    def test_several_windows_and_shards_on_four_ranks(self):
        rows = self.compare("--ranks", "4", "--set", "window.shards=4", "--windows", "2", *SHORT)
        self.assertEqual((rows["correct"]["values"], rows["correct"]["out_of_tolerance"]), (2 * VALUES, 0))


if __name__ == "__main__":
    print("program {}, source {}".format(PROGRAM, SOURCE))
    unittest.main()
