"""Processes of this machine as /proc shows them."""

import dataclasses
import os
import pathlib
import time
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int
    session: int
    state: str
    command: str

    def environment(self) -> dict[str, str]:
        """As it was at exec; empty for a process that has ended."""
        try:
            text = pathlib.Path("/proc/{}/environ".format(self.pid)).read_bytes().decode(errors="replace")
        except OSError:
            return {}
        return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)

    def send(self, signal: int) -> None:
        try:
            os.kill(self.pid, signal)
        except ProcessLookupError:
            pass

    def __str__(self) -> str:
        return "{} {} {}".format(self.pid, self.state, self.command)


def read(pid: int) -> Process | None:
    """None for a process that has ended, and for one that only waits to be noticed by its parent."""
    folder = pathlib.Path("/proc") / str(pid)
    try:
        # "PID (NAME) STATE PPID PGRP SESSION ...", and the name may hold anything.
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return None
    state, session = fields[0], int(fields[3])
    return None if state in "ZX" else Process(pid, session, state, command)


def in_session(leader: int) -> list[Process]:
    """The running processes of a session. A rank leaves its launcher's process group, not its session."""
    found = (read(int(entry)) for entry in os.listdir("/proc") if entry.isdigit())
    return [process for process in found if process is not None and process.session == leader]


def wait_until(happened: Callable[[], bool], seconds: float) -> bool:
    """Whether it happened in time."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
