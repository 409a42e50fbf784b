"""Runs scripts/lint on small clones: what it passes, what it refuses, and what it says."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("TALLY_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
GOOD = "int add(int a, int b) { return a + b; }\n"
BAD = "int add( int a,int b ){return a+b;}\n"


class LintTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="tally-lint-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "scripts").mkdir()
        shutil.copy(SOURCE / "scripts/lint", self.folder / "scripts/lint")
        shutil.copy(SOURCE / ".clang-format", self.folder)
        subprocess.run(["git", "init", "--quiet"], cwd=self.folder, check=True)
        self.write("good.cc", GOOD)

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def lint(self, *words, path=None):
        environment = dict(os.environ)
        if path:
            environment["PATH"] = "{}:{}".format(path, environment["PATH"])
        return subprocess.run(["scripts/lint", *words], cwd=self.folder, env=environment, capture_output=True, text=True,
                              timeout=60, check=False)

    def test_formatted_sources_pass(self):
        self.write("other.h", "#pragma once\n")
        result = self.lint()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "lint: 2 files are formatted\n")

    def test_a_source_out_of_format_is_named_whatever_its_kind(self):
        for name in ("bad.cc", "bad.h", "bad.cu", "bad.cuh"):
            with self.subTest(name):
                file = self.write(name, BAD)
                result = self.lint()
                file.unlink()
                self.assertEqual(result.returncode, 1)
                self.assertIn(name + ":1:", result.stderr)
                self.assertRegex(result.stderr, "lint: format the files above: clang-format(-14)? -i FILE")

    def test_a_file_that_git_ignores_is_not_looked_at(self):
        self.write(".gitignore", "/build/\n")
        self.write("build/bad.cc", BAD)
        self.assertEqual(self.lint().returncode, 0)

    def test_a_tree_without_git_is_looked_at_as_a_whole(self):
        shutil.rmtree(self.folder / ".git")
        self.write("deep/good.h", "#pragma once\n")
        self.write("build/bad.cc", BAD)
        result = self.lint()
        self.assertEqual((result.returncode, result.stdout), (0, "lint: 2 files are formatted\n"), result.stderr)
        self.write("deep/bad.cc", BAD)
        self.assertEqual(self.lint().returncode, 1)

    def test_another_version_of_clang_format_is_refused(self):
        for name in ("clang-format-14", "clang-format"):
            tool = self.write("tools/" + name, "#!/bin/sh\necho Ubuntu clang-format version 18.1.3\n")
            tool.chmod(0o755)
        result = self.lint(path=self.folder / "tools")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "lint: clang-format 14 is missing and other versions judge differently; "
                         "install clang-format-14 (scripts/bootstrap --lint does)\n")

    def test_clang_tidy_wants_a_configured_build(self):
        self.write("framework/CMakeLists.txt", "tally_room(log)\n")
        result = self.lint("--all")
        self.assertEqual(result.returncode, 1)
        self.assertIn("build/release is not configured; run cmake --preset release", result.stderr)

    def test_an_unknown_option_is_refused(self):
        result = self.lint("--fast")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "lint: --fast is no option; there are --tidy and --all\n")


if __name__ == "__main__":
    unittest.main()
