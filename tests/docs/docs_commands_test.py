"""Runs the commands of README.md and framework/docs, and checks files and links that the pages name.

A block fenced as ```sh holds commands. Lines that begin with `tally` or `build/release/bin/tally` run in a temporary
folder with prepared data and must end with 0, or with N where the line ends in `# exit code N`. Every other command
must name a program and files that exist. Standard library only.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

PROGRAM = pathlib.Path(os.environ["TALLY_PROGRAM"])
SOURCE = pathlib.Path(os.environ["TALLY_SOURCE"])
TALLY = ("tally", "build/release/bin/tally")
# Programs that a reader may have and this machine need not.
LAUNCHERS = ("torchrun", "srun", "mpirun")
LINKED = ("configs", "plugins", "recipes", "tests")
# What keeps a verb of the pages short here, unless the page sets the key itself; none changes an exit code.
SMALL = ("window.batch_size=2",)
SHORT = {
    "train": (*SMALL, "train.updates=4", "train.stop_at=2"),
    "reference": SMALL,
    "compare": SMALL,
    "resume-check": SMALL,
}


def pages():
    return [SOURCE / "README.md", *sorted((SOURCE / "framework/docs").glob("*.md"))]


def blocks(text):
    """(language, first line's number, lines) of each fenced block."""
    language, start, lines = None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("```"):
            lines.append(line)
        elif language is None:
            language, start, lines = line[3:].strip(), number + 1, []
        else:
            yield language, start, lines
            language = None
    if language is not None:
        raise ValueError("the block at line {} is not closed".format(start - 1))


class Command:
    """One line of a shell block."""

    def __init__(self, page, number, line):
        self.page = page
        self.place = "{}:{}".format(page.relative_to(SOURCE), number)
        code = re.search(r"#\s*exit code (\d+)\s*$", line)
        self.code = int(code.group(1)) if code else 0
        self.words = shlex.split(line, comments=True)
        self.environment = {}
        while self.words and re.match(r"[A-Za-z_]\w*=", self.words[0]):
            name, value = self.words.pop(0).split("=", 1)
            self.environment[name] = value

    def runs_here(self):
        return self.words[0] in TALLY

    def key(self):
        return (tuple(self.words[1:]), tuple(sorted(self.environment.items())))

    def __str__(self):
        return "{}: {}".format(self.place, " ".join(self.words))


def commands():
    for page in pages():
        for language, start, lines in blocks(page.read_text(encoding="utf-8")):
            if language != "sh":
                continue
            for offset, line in enumerate(lines):
                if line.strip() and not line.lstrip().startswith("#"):
                    yield Command(page, start + offset, line)


def anchors(text):
    """The anchors that a page's headings give, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for heading in re.findall(r"^#+ (.+)$", text, flags=re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def run(folder, words, environment):
    unwanted = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TALLY_PLUGIN_PATH")
    clean = {name: value for name, value in os.environ.items() if name not in unwanted}
    sets = []
    for value in SHORT.get(words[0], ()):
        if not any(word.startswith(value.split("=")[0] + "=") for word in words):
            sets += ["--set", value]
    return subprocess.run([str(PROGRAM), *words, *sets], cwd=folder, env={**clean, **environment},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)


def run_page(folder, of_page):
    """Pairs of command and result; a page's commands run in order in a folder of their own."""
    return [(command, run(folder, command.words[1:], command.environment)) for command in of_page]


class DocsTest(unittest.TestCase):
    def test_commands_end_as_the_page_says(self):
        by_page, seen = {}, set()
        for command in commands():
            if command.runs_here() and command.key() not in seen:
                seen.add(command.key())
                by_page.setdefault(command.page, []).append(command)
        self.assertGreaterEqual(len(seen), 10)
        with tempfile.TemporaryDirectory(prefix="tally-docs-") as temporary, ThreadPoolExecutor(2) as pool:
            first = None
            jobs = []
            for page in by_page:
                folder = pathlib.Path(temporary) / page.stem
                folder.mkdir()
                for name in LINKED:
                    (folder / name).symlink_to(SOURCE / name)
                if first is None:
                    first = folder
                    prepared = run(folder, ["prepare"], {})
                    self.assertEqual(prepared.returncode, 0, prepared.stderr)
                else:
                    shutil.copytree(first / "data", folder / "data")
            for page, of_page in by_page.items():
                jobs.append(pool.submit(run_page, pathlib.Path(temporary) / page.stem, of_page))
            for command, result in (pair for job in jobs for pair in job.result()):
                with self.subTest(str(command)):
                    self.assertEqual(result.returncode, command.code, result.stdout + result.stderr)

    def test_other_commands_name_files_that_exist(self):
        for command in commands():
            if command.runs_here():
                continue
            with self.subTest(str(command)):
                program = command.words[0]
                if "/" in program:
                    self.assertTrue(os.access(SOURCE / program, os.X_OK), program + " cannot be run")
                elif program not in LAUNCHERS:
                    self.assertIsNotNone(shutil.which(program), program + " is not installed")
                for word in command.words[1:]:
                    top = word.split("/", 1)[0]
                    if (SOURCE / top).is_dir() and top != "build":
                        self.assertTrue((SOURCE / word).exists(), word + " does not exist")

    def test_links_lead_somewhere(self):
        for page in pages():
            text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"[a-z]+://", target):
                    continue
                with self.subTest("{}: {}".format(page.relative_to(SOURCE), target)):
                    name, _, anchor = target.partition("#")
                    file = page.parent / name if name else page
                    self.assertTrue(file.exists(), "there is no " + str(file))
                    if anchor:
                        self.assertIn(anchor, list(anchors(file.read_text(encoding="utf-8"))))

    def test_every_page_is_linked_from_the_readme(self):
        readme = (SOURCE / "README.md").read_text(encoding="utf-8")
        for page in (SOURCE / "framework/docs").glob("*.md"):
            self.assertTrue("(framework/docs/{})".format(page.name) in readme, page.name + " is not linked")


if __name__ == "__main__":
    unittest.main()
