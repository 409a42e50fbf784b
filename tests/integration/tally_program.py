"""Runs the program tally in a temporary folder. Standard library only."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from processes import Process, in_session, wait_until

PROGRAM = pathlib.Path(os.environ["TALLY_PROGRAM"])
SOURCE = pathlib.Path(os.environ["TALLY_SOURCE"])
WITHOUT_CAPABILITIES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
# What would make the program a rank of another run, or let it find other plugins.
UNWANTED = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_",
    "MASTER_",
    "SLURM_",
    "OMPI_",
    "PMI_",
    "MPI_",
    "TORCHELASTIC_",
    "TALLY_",
    "PYTHONPATH",
)
STACK_TRACE_MARKS = (
    "terminate called",
    "what():",
    "frame #",
    "C++ CapturedTraceback",
    "Exception raised from",
    "Traceback",
    "AddressSanitizer",
    "runtime error:",
    "Segmentation fault",
)
# After the program's end a rank may take a moment to go.
END_SECONDS = 2


class Result:
    """What one call left: exit code and both streams."""

    def __init__(self, arguments, code, stdout, stderr):
        self.arguments = arguments
        self.code = code
        self.stdout = stdout
        self.stderr = stderr

    def json(self):
        """The one document on standard output; anything else there is an error."""
        return json.loads(self.stdout)

    def sentence(self) -> str:
        """The one complaint of the program: the line on stderr that starts with its name."""
        lines = [line for line in self.stderr.splitlines() if line.startswith("tally: ")]
        if len(lines) != 1:
            raise AssertionError("expected one line 'tally: ...'\n{}".format(self))
        return lines[0]

    def __str__(self):
        return "tally {}: exit code {}\n--- stdout\n{}\n--- stderr\n{}".format(
            " ".join(self.arguments), self.code, self.stdout, self.stderr
        )


class Running:
    """A started program. Its ranks belong to its session, so none of them can hide."""

    def __init__(self, arguments, popen: subprocess.Popen):
        self.arguments = arguments
        self.popen = popen
        self.pid = popen.pid

    def ranks(self) -> dict[int, Process]:
        """The processes that the launcher started and that run, by rank."""
        found = {}
        for process in in_session(self.pid):
            rank = process.environment().get("RANK")
            if process.pid != self.pid and rank is not None:
                found[int(rank)] = process
        return found

    def finish(self, stdin=None, timeout=240.0) -> Result:
        """Waits for the end. Raises AssertionError when the program takes longer, leaves a process or a stack trace."""
        try:
            stdout, stderr = self.popen.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            left = self.end()
            raise AssertionError(
                "tally {} did not end in {} s; then ran:\n{}".format(" ".join(self.arguments), timeout, left)
            ) from None
        result = Result(self.arguments, self.popen.returncode, stdout, stderr)
        if not wait_until(lambda: not in_session(self.pid), END_SECONDS):
            raise AssertionError("processes are left:\n{}\n{}".format(self.end(), result))
        for mark in STACK_TRACE_MARKS:
            if mark in stdout + stderr:
                raise AssertionError("'{}' shows a crash\n{}".format(mark, result))
        return result

    def end(self) -> str:
        """Ends all that still runs and says what that was."""
        left = in_session(self.pid)
        for process in left:
            process.send(signal.SIGKILL)
        self.popen.communicate()
        return "\n".join(str(process) for process in left)


class TallyProgram:
    """A temporary folder with links to the shipped recipes and configs, where the program runs."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tally-test-"))
        for name in ("recipes", "configs"):
            (self.folder / name).symlink_to(SOURCE / name)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def environment(self, changes=None):
        """The caller's environment without what is UNWANTED here."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(UNWANTED)}
        environment["NO_COLOR"] = "1"
        environment.update(changes or {})
        return environment

    def start(self, *arguments, environment=None, program=(str(PROGRAM),), **options) -> Running:
        """The running program, for a test that sends signals; in a session of its own, all streams piped.

        `program`: what stands in front of the arguments, for a launcher that starts tally.
        """
        arguments = [str(argument) for argument in arguments]
        popen = subprocess.Popen(
            [*program, *arguments],
            cwd=self.folder,
            env=self.environment(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )
        return Running(arguments, popen)

    def run(self, *arguments, stdin="", environment=None, timeout=240.0, unprivileged=False) -> Result:
        """Runs to the end, which must come within `timeout` seconds.

        `unprivileged`: permissions hold for root too, who otherwise may write anywhere.
        """
        prefix = WITHOUT_CAPABILITIES if unprivileged and os.geteuid() == 0 else ()
        running = self.start(*arguments, environment=environment, program=(*prefix, str(PROGRAM)))
        return running.finish(stdin, timeout)

    def write(self, name, text):
        """Writes a file in the folder and returns its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def metrics(self, recipe="correct") -> list[dict]:
        """One entry a window of the last run of a recipe."""
        return [json.loads(line) for line in self.read("outputs/{}/metrics.jsonl".format(recipe)).splitlines()]

    def losses(self, recipe="correct") -> list[float]:
        return [entry["loss"] for entry in self.metrics(recipe)]

    def files(self, name) -> set[str]:
        """All files below a folder, relative to it."""
        folder = self.folder / name
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


class TallyTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        self.tally = TallyProgram()
        self.addCleanup(self.tally.close)

    def succeed(self, *arguments, **options) -> Result:
        result = self.tally.run(*arguments, **options)
        self.assertEqual(result.code, 0, result)
        return result

    def assert_refused(self, result: Result, code: int, *words: str) -> None:
        """One sentence on stderr holds all the words, and the exit code is the one given."""
        self.assertEqual(result.code, code, result)
        sentence = result.sentence()
        for word in words:
            self.assertIn(word, sentence, result)
