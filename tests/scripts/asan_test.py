"""Runs scripts/asan with a cmake and a ctest that only write down how they were called."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("TALLY_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
RECORD = '#!/bin/sh\necho "$(basename "$0") $*" >>calls\nenv | grep -E "^(LSAN|ASAN)_" >>options || true\n'


class AsanTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="tally-asan-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()
        (self.folder / "scripts").mkdir()
        shutil.copy(SOURCE / "scripts/asan", self.folder / "scripts/asan")
        self.program("scripts/bootstrap", "#!/bin/sh\n")
        for name in ("tools/cmake", "tools/ctest", "build/asan/bin/files_test", "build/asan/bin/recipe_test"):
            self.program(name, RECORD)
        for room in ("files", "recipe"):
            self.program("tests/unit/{0}/{0}_test.cc".format(room), "")

    def program(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)

    def asan(self, *rooms):
        environment = {**os.environ, "PATH": "{}:{}".format(self.folder / "tools", os.environ["PATH"])}
        return subprocess.run(["scripts/asan", *rooms], cwd=self.folder, env=environment, capture_output=True, text=True,
                              timeout=60, check=False)

    def calls(self):
        return (self.folder / "calls").read_text(encoding="utf-8").splitlines()

    def test_without_a_room_everything_is_built_and_tested(self):
        result = self.asan()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.calls()[:2], ["cmake --preset asan", "cmake --build --preset asan"])
        self.assertRegex(self.calls()[2], r"^ctest --preset asan --parallel \d+$")

    def test_rooms_are_built_and_run_alone_with_the_options_of_the_sanitizers(self):
        result = self.asan("files", "recipe")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.calls(), [
            "cmake --preset asan", "cmake --build --preset asan --target files_test recipe_test",
            "files_test --gtest_brief=1", "recipe_test --gtest_brief=1"])
        options = (self.folder / "options").read_text(encoding="utf-8")
        self.assertIn("LSAN_OPTIONS=suppressions={}/tests/lsan.supp:print_suppressions=0\n".format(self.folder), options)
        self.assertIn("ASAN_OPTIONS=detect_odr_violation=0\n", options)

    def test_the_first_room_that_fails_ends_it(self):
        self.program("build/asan/bin/files_test", "#!/bin/sh\nexit 7\n")
        self.assertEqual(self.asan("files", "recipe").returncode, 7)
        self.assertNotIn("recipe_test --gtest_brief=1", self.calls())

    def test_a_room_without_tests_is_refused_before_anything_is_built(self):
        result = self.asan("files", "fiels")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "asan: tests/unit/fiels holds no unit tests; name folders of tests/unit, "
                         "or nothing for all tests\n")
        self.assertFalse((self.folder / "calls").exists())


if __name__ == "__main__":
    unittest.main()
