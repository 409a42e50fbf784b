"""Runs the program tally in a temporary folder. Standard library only."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

PROGRAM = pathlib.Path(os.environ["TALLY_PROGRAM"])
SOURCE = pathlib.Path(os.environ["TALLY_SOURCE"])


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

    def __str__(self):
        return "tally {}: exit code {}\n--- stdout\n{}\n--- stderr\n{}".format(
            " ".join(self.arguments), self.code, self.stdout, self.stderr
        )


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
        """Without what could make the program a rank of another run, or find other plugins."""
        unwanted = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TALLY_PLUGIN_PATH", "PYTHONPATH")
        environment = {name: value for name, value in os.environ.items() if name not in unwanted}
        environment["NO_COLOR"] = "1"
        environment.update(changes or {})
        return environment

    def start(self, *arguments, environment=None, **options):
        """The running process, for a test that sends signals; text streams, stdout and stderr piped."""
        return subprocess.Popen(
            [str(PROGRAM), *arguments],
            cwd=self.folder,
            env=self.environment(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def run(self, *arguments, stdin="", environment=None, timeout=240):
        """Runs to the end. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        arguments = [str(argument) for argument in arguments]
        done = subprocess.run(
            [str(PROGRAM), *arguments],
            cwd=self.folder,
            env=self.environment(environment),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Result(arguments, done.returncode, done.stdout, done.stderr)

    def write(self, name, text):
        """Writes a file in the folder and returns its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path
