"""The verbs around training: their numbers, their documents and their exit codes."""

import os
import unittest

from tally_program import PROGRAM, SOURCE, TallyProgram

SMALL = ("--set", "train.updates=2", "--set", "window.batch_size=2", "--set", "run.device=cpu")


class WithoutData(unittest.TestCase):
    """Verbs that need no data."""

    def setUp(self):
        self.tally = TallyProgram()
        self.addCleanup(self.tally.close)

    def run_json(self, *arguments, code=0, **options):
        result = self.tally.run(*arguments, "--json", **options)
        self.assertEqual(result.code, code, result)
        return result.json()


class CheckLoss(WithoutData):
    def assert_numbers(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for value, wanted in zip(found, expected):
            self.assertAlmostEqual(value, wanted, places=12)

    def test_numbers_of_both_formulas(self):
        document = self.run_json("check-loss")
        self.assertEqual((document["mean_of_means"], document["global_mean"]), (2, 2.5))
        self.assertTrue(document["as_expected"])
        wrong, correct = document["reducers"]
        self.assertEqual((wrong["recipe"], wrong["reducer"]), ("wrong", "rank_mean"))
        self.assertEqual((correct["recipe"], correct["reducer"]), ("correct", "token_mean"))
        for reducer in (wrong, correct):
            self.assertEqual(reducer["divisor"], 2)
            self.assertEqual(reducer["unequal"]["tokens"], [12, 36])
            self.assertEqual(reducer["unequal"]["sums"], [12, 108])
            self.assertEqual(reducer["two_microbatches"]["tokens"], [12, 36])
            self.assertEqual(reducer["one_parameter"]["losses"], [1, 1])
            for spot in reducer["blind_spots"].values():
                self.assertAlmostEqual(spot["objective"], 2, places=12)
        self.assert_numbers(correct["unequal"]["contributions"], [0.5, 4.5])
        self.assert_numbers(correct["unequal"]["token_weights"], [1 / 48, 1 / 48])
        self.assert_numbers(wrong["unequal"]["token_weights"], [1 / 24, 1 / 72])
        self.assertAlmostEqual(correct["unequal"]["objective"], 2.5, places=12)
        self.assertAlmostEqual(wrong["unequal"]["objective"], 2, places=12)
        self.assertAlmostEqual(correct["two_microbatches"]["objective"], 2.5, places=12)
        self.assertAlmostEqual(correct["two_microbatches"]["divided_again"], 1.25, places=12)
        self.assertAlmostEqual(correct["one_parameter"]["gradient"], 1, places=12)
        self.assertAlmostEqual(wrong["one_parameter"]["gradient"], 0, places=12)

    def test_wrong_reducer_that_must_pass_is_caught(self):
        result = self.tally.run("check-loss", "--must-pass", "recipes/wrong.toml")
        self.assertEqual(result.code, 1, result)
        self.assertIn("the objective is 2 and should be 2.5", result.stderr)

    def test_right_reducer_that_must_fail_is_caught(self):
        document = self.run_json("check-loss", "--must-fail", "recipes/correct.toml", code=1)
        self.assertFalse(document["as_expected"])
        self.assertFalse(document["reducers"][0]["as_expected"])
        self.assertTrue(document["reducers"][1]["as_expected"])

    def test_text_names_the_blind_spots(self):
        result = self.tally.run("check-loss")
        self.assertEqual(result.code, 0, result)
        for words in ("blind spots", "equal counts", "equal local means", "1/24, 1/72"):
            self.assertIn(words, result.stdout)


class RecipeShow(WithoutData):
    def test_every_value_with_its_origin(self):
        document = self.run_json(
            "recipe", "show", "recipes/correct.toml", "--set", "optimizer.learning_rate=0.125"
        )
        self.assertEqual(document["name"], "correct")
        values = {entry["key"]: entry for entry in document["values"]}
        self.assertEqual(values["optimizer.learning_rate"]["value"], 0.125)
        self.assertIn("--set", values["optimizer.learning_rate"]["origin"])
        self.assertEqual(values["train.updates"]["value"], 100)
        self.assertIn("minimum.toml:", values["train.updates"]["origin"])
        self.assertIn("correct.toml:", values["task.plugin"]["origin"])
        # A default of a hook, which nobody wrote.
        self.assertEqual(values["task.prompt_length"]["value"], 0)
        self.assertIn("default", values["task.prompt_length"]["origin"])

    def test_text_has_a_line_a_value(self):
        result = self.tally.run("recipe", "show", "recipes/correct.toml")
        self.assertEqual(result.code, 0, result)
        line = next(text for text in result.stdout.splitlines() if text.startswith("run.ranks"))
        self.assertIn("minimum.toml:", line)

    def test_unknown_key(self):
        result = self.tally.run("recipe", "show", "recipes/correct.toml", "--set", "run.rank=2")
        self.assertEqual(result.code, 2, result)
        self.assertIn('run.rank = 2 is no known key of [run]: did you mean "ranks"?', result.stderr)

    def test_sub_verb_is_required(self):
        self.assertEqual(self.tally.run("recipe").code, 2)


class Doctor(WithoutData):
    def test_this_machine(self):
        document = self.run_json("doctor")
        self.assertTrue(document["ok"])
        checks = {check["check"]: check for check in document["checks"]}
        self.assertIn("2.11", checks["LibTorch"]["detail"])
        self.assertIn("the sum is right", checks["all-reduce on the CPU"]["detail"])
        self.assertIn("token_mean 0.1.0", checks["plugin token_mean"]["detail"])

    def test_dual_without_two_gpus(self):
        result = self.tally.run("doctor", "--dual", environment={"CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(result.code, 1, result)
        self.assertIn("--dual wants two GPUs, and LibTorch can use 0", result.stderr)

    def test_broken_plugin(self):
        self.tally.write("plugins/broken.so", "this is no library")
        result = self.tally.run("doctor", "--plugin-path", "plugins")
        self.assertEqual(result.code, 1, result)
        self.assertIn("plugin broken:", result.stderr)

    def test_rank_of_the_doctor_is_not_for_people(self):
        self.assertEqual(self.tally.run("doctor-rank").code, 2)
        self.assertNotIn("doctor-rank", self.tally.run("--help").stdout)


class Clean(WithoutData):
    def setUp(self):
        super().setUp()
        self.tally.write("outputs/run/metrics.jsonl", "12345")
        self.tally.write("artifacts/checkpoints/step-0001/model", "1234567")
        self.tally.write("data/tiny.jsonl", "123")
        self.tally.write("elsewhere/kept", "1")

    def there(self):
        return {name for name in ("outputs", "artifacts", "data") if (self.tally.folder / name).exists()}

    def test_dry_run_lists_sizes_and_removes_nothing(self):
        document = self.run_json("clean", "--scope", "all", "--dry-run")
        self.assertEqual(
            [(entry["path"], entry["files"], entry["bytes"], entry["kept"]) for entry in document["entries"]],
            [("outputs", 1, 5, 0), ("artifacts", 1, 7, 0), ("data", 0, 0, 1)],
        )
        self.assertEqual(self.there(), {"outputs", "artifacts", "data"})

    def test_generated_keeps_the_data(self):
        self.run_json("clean")
        self.assertEqual(self.there(), {"data"})

    def test_all_twice(self):
        (self.tally.folder / "data/tiny.jsonl").unlink()
        self.assertEqual(self.tally.run("prepare", *SMALL).code, 0)
        self.assertEqual(self.tally.files("data"), {"tiny_lm.jsonl", "data.lock.json", "made.json", "windows.jsonl"})
        self.run_json("clean", "--scope", "all")
        self.assertEqual(self.there(), set())
        self.assertEqual(self.run_json("clean", "--scope", "all")["entries"], [])

    def test_all_keeps_what_a_person_brought_or_changed(self):
        self.assertEqual(self.tally.run("prepare", *SMALL).code, 0)
        file = self.tally.folder / "data/tiny_lm.jsonl"
        file.write_text(file.read_text().replace("[0,", "[1,", 1))
        result = self.tally.run("clean", "--scope", "all")
        self.assertEqual(result.code, 0, result)
        self.assertIn("without 2 files that tally did not make", result.stdout)
        self.assertEqual(self.tally.files("data"), {"tiny.jsonl", "tiny_lm.jsonl"})
        self.assertEqual(self.tally.run("prepare", *SMALL).code, 0, "what is there is used")
        self.run_json("clean", "--scope", "all")
        self.assertEqual(self.tally.files("data"), {"tiny.jsonl", "tiny_lm.jsonl"})

    def test_links_are_removed_and_not_followed(self):
        folder = self.tally.folder
        (folder / "outputs" / "link").symlink_to(folder / "elsewhere")
        os.rename(folder / "artifacts", folder / "moved")
        (folder / "artifacts").symlink_to(folder / "moved")
        entries = self.run_json("clean")["entries"]
        self.assertEqual([entry["link"] for entry in entries], [False, True])
        self.assertFalse((folder / "artifacts").is_symlink())
        self.assertTrue((folder / "elsewhere" / "kept").exists())
        self.assertTrue((folder / "moved" / "checkpoints" / "step-0001" / "model").exists())

    def test_no_permission(self):
        os.chmod(self.tally.folder / "outputs", 0o500)
        self.addCleanup(os.chmod, self.tally.folder / "outputs", 0o700)
        os.chmod(self.tally.folder / "outputs" / "run", 0o500)
        self.addCleanup(os.chmod, self.tally.folder / "outputs" / "run", 0o700)
        result = self.tally.run("clean", unprivileged=True)
        self.assertEqual(result.code, 3, result)
        self.assertIn("cannot remove outputs: Permission denied", result.stderr)

    def test_unknown_scope(self):
        self.assertEqual(self.tally.run("clean", "--scope", "everything").code, 2)


class Help(WithoutData):
    def test_every_verb_has_help_and_json(self):
        for verb in ("doctor", "check-loss", "evaluate", "exercise", "clean"):
            result = self.tally.run(verb, "--help")
            self.assertEqual(result.code, 0, result)
            self.assertIn("--json", result.stdout)
        result = self.tally.run("recipe", "show", "--help")
        self.assertEqual(result.code, 0, result)
        self.assertIn("--json", result.stdout)

    def test_data_must_be_prepared(self):
        result = self.tally.run("exercise")
        self.assertEqual(result.code, 3, result)
        self.assertIn("tally prepare", result.stderr)
        result = self.tally.run("evaluate")
        self.assertEqual(result.code, 3, result)
        self.assertIn("there is no checkpoint in artifacts/checkpoints", result.stderr)


class WithData(unittest.TestCase):
    """Verbs that need data, and a checkpoint after two updates."""

    @classmethod
    def setUpClass(cls):
        cls.tally = TallyProgram()
        cls.addClassCleanup(cls.tally.close)
        for arguments in (("prepare", *SMALL), ("train", "recipes/correct.toml", *SMALL)):
            result = cls.tally.run(*arguments)
            if result.code != 0:
                raise AssertionError(str(result))

    def run_json(self, *arguments, code=0, **options):
        result = self.tally.run(*arguments, "--json", **options)
        self.assertEqual(result.code, code, result)
        return result.json()

    def test_exercise_by_hand_and_in_the_model(self):
        document = self.run_json("exercise", "--set", "run.device=cpu")
        self.assertTrue(document["as_expected"])
        wrong, correct = document["arithmetic"]
        self.assertEqual([wrong["recipe"], correct["recipe"]], ["wrong", "correct"])
        for row, after in ((wrong, 2), (correct, 2.5)):
            self.assertEqual(row["before"]["tokens"], [12, 12])
            self.assertEqual(row["after"]["tokens"], [12, 36])
            self.assertAlmostEqual(row["before"]["objective"], 2, places=12)
            self.assertAlmostEqual(row["after"]["objective"], after, places=12)
        before, after = document["model"]
        self.assertEqual([before["supervised"], after["supervised"]], [[12, 12], [12, 36]])
        verdicts = [[recipe["pass"] for recipe in step["recipes"]] for step in (before, after)]
        self.assertEqual(verdicts, [[True, True], [False, True]])
        for recipe in after["recipes"]:
            self.assertEqual(recipe["values"], 282628)
        self.assertGreater(after["recipes"][0]["max_abs_error"], 1e-3)
        self.assertLess(after["recipes"][1]["max_abs_error"], 1e-6)
        self.assertIn("local instead of global count", after["recipes"][0]["diagnosis"])
        self.assertAlmostEqual(after["recipes"][1]["norm"], after["reference_norm"], places=5)

    def test_exercise_asks_first(self):
        arguments = ("exercise", "--predict", "--set", "run.device=cpu")
        answers = self.run_json(*arguments, stdin=" 2.0\n2,5\nMeans\nn\n")["predictions"]
        self.assertEqual([answer["correct"] for answer in answers], [True] * 4)
        answers = self.run_json(*arguments, stdin="2.5\n2\nglobal\nW\n")["predictions"]
        self.assertEqual([answer["correct"] for answer in answers], [False] * 4)
        result = self.tally.run(*arguments, stdin="2\n")
        self.assertEqual(result.code, 0, result)
        self.assertIn("1 of 4 predictions were right", result.stdout)
        self.assertLess(result.stdout.index("second division?"), result.stdout.index("by hand"))

    def test_evaluate_the_newest(self):
        document = self.run_json("evaluate", "--set", "run.device=cpu")
        self.assertEqual(document["window"], 2)
        self.assertTrue(document["checkpoint"].endswith("step-0002"))
        self.assertTrue(document["same_data"])
        self.assertEqual(document["sequences"], 256)
        (term,) = document["terms"]
        self.assertEqual(document["tokens"], term["count"])
        self.assertAlmostEqual(document["loss"], term["sum"] / term["count"], places=12)
        best = document["measures"]["best_reachable_loss"]
        accuracy = document["measures"]["accuracy"]
        self.assertEqual(best["count"], document["tokens"])
        self.assertLessEqual(best["mean"], document["loss"])
        self.assertLess(document["loss"], 2.5)
        self.assertEqual(accuracy["count"], document["tokens"])
        self.assertTrue(0.1 < accuracy["mean"] < 1)

    def test_evaluate_does_not_depend_on_the_batch_size(self):
        losses = []
        for size in (3, 64):
            document = self.run_json(
                "evaluate", "--split", "validation", "--set", "window.batch_size={}".format(size),
                "--set", "run.device=cpu",
            )
            self.assertEqual(document["sequences"], 128)
            losses.append(document["loss"])
        self.assertAlmostEqual(losses[0], losses[1], places=5)

    def test_evaluate_passes_over_a_damaged_checkpoint(self):
        damaged = self.tally.folder / "artifacts/checkpoints/step-0009"
        os.makedirs(damaged)
        self.addCleanup(os.rmdir, damaged)
        result = self.tally.run("evaluate", "--json", "--set", "run.device=cpu")
        self.assertEqual(result.code, 0, result)
        document = result.json()
        self.assertTrue(document["checkpoint"].endswith("step-0002"))
        self.assertEqual([entry["path"][-9:] for entry in document["damaged"]], ["step-0009"])
        self.assertIn("step-0009", result.stderr)
        named = self.tally.run("evaluate", "--checkpoint", damaged)
        self.assertEqual(named.code, 3, named)

    def test_evaluate_other_data(self):
        self.run_json("prepare", "--set", "data.folder=other", "--set", "task.data_seed=5")
        document = self.run_json(
            "evaluate", "--set", "data.folder=other", "--set", "task.data_seed=5",
            "--set", "run.device=cpu",
        )
        self.assertFalse(document["same_data"])

    def test_evaluate_unknown_split(self):
        self.assertEqual(self.tally.run("evaluate", "--split", "dev").code, 2)


if __name__ == "__main__":
    print("program {}, source {}".format(PROGRAM, SOURCE))
    unittest.main()
