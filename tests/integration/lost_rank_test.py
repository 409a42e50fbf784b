"""Ranks that die, stop, never come or are told to end: nobody waits for ever, and nothing is left behind."""

import json
import pathlib
import signal
import socket
import time
import unittest

from processes import in_session, wait_until
from tally_program import PROGRAM, SOURCE, Running, TallyProgram, TallyTest

TIMEOUT = 3  # run.timeout, seconds
# After run.timeout: the launcher's grace for survivors, and a busy machine.
END_SECONDS = TIMEOUT + 20
OPTIONS = (
    "--set", "run.device=cpu", "--set", "run.timeout={}".format(TIMEOUT), "--set", "window.batch_size=2",
    "--continuous", "--overwrite", "--set", "train.updates=1000000",
)  # fmt: skip
ENDLESS = ("train", "recipes/correct.toml", *OPTIONS)


class WithData(TallyTest):
    @classmethod
    def setUpClass(cls):
        cls.prepared = TallyProgram()
        cls.addClassCleanup(cls.prepared.close)
        result = cls.prepared.run("prepare", "--set", "train.updates=2")
        if result.code != 0:
            raise AssertionError(str(result))

    def setUp(self):
        super().setUp()
        (self.tally.folder / "data").symlink_to(self.prepared.folder / "data")

    def start(self, environment=None, arguments=ENDLESS) -> Running:
        running = self.tally.start(*arguments, environment=environment)
        self.addCleanup(running.end)
        return running

    def started_training(self) -> Running:
        """A run of two ranks in the middle of its windows."""
        self.metrics_file().unlink(missing_ok=True)
        running = self.start()
        self.wait_for_windows(running)
        return running

    def metrics_file(self) -> pathlib.Path:
        return self.tally.folder / "outputs/correct/metrics.jsonl"

    def wait_for_windows(self, running: Running) -> None:
        file = self.metrics_file()
        trains = wait_until(lambda: file.exists() and file.read_text().count("\n") >= 3, 60)
        if not trains:
            self.fail("no window was trained; then ran:\n{}".format(running.end()))

    def assert_board(self, text: str, ranks=(0, 1)) -> None:
        """Each rank's line says window, phase and last collective."""
        for rank in ranks:
            self.assertRegex(
                text, r"(?m)^  rank {}: window \d+, [a-z ]+ for [\d.]+ s; last collective: \S".format(rank)
            )


class LostRank(WithData):
    def finish(self, running: Running):
        start = time.monotonic()
        result = running.finish(timeout=END_SECONDS)
        self.assertEqual(result.code, 4, result)
        self.assertEqual(self.tally.files("artifacts"), set())
        return result, time.monotonic() - start

    def test_killed(self):
        for lost, other in ((1, 0), (0, 1)):
            with self.subTest(rank=lost):
                running = self.started_training()
                running.ranks()[lost].send(signal.SIGKILL)
                result, _ = self.finish(running)
                said = "rank {} was ended by signal 9 (Killed); its log is outputs/correct/logs/rank-{}.log"
                self.assertIn(said.format(lost, lost), result.sentence())
                self.assert_board(result.stderr)
                self.assertIn("  rank {} was ended by signal 9".format(lost), result.stderr)
                self.assertRegex(result.stderr, "it said: rank {} lost contact in the .* at window".format(other))
                self.assertIn("  rank {} ended with exit code 4".format(other), result.stderr)

    def test_stopped(self):
        running = self.started_training()
        running.ranks()[1].send(signal.SIGSTOP)
        result, seconds = self.finish(running)
        self.assertIn("rank 1 did not react and was ended; the other ranks gave up waiting for it", result.sentence())
        self.assert_board(result.stderr)
        self.assertIn("  rank 1 was ended by the launcher", result.stderr)
        self.assertGreater(seconds, TIMEOUT - 1)

    def test_launcher_killed(self):
        running = self.started_training()
        self.assertEqual(len(running.ranks()), 2)
        running.popen.send_signal(signal.SIGKILL)
        if not wait_until(lambda: not in_session(running.pid), 5):
            self.fail("ranks outlive their launcher:\n{}".format(running.end()))


class WithoutLauncher(WithData):
    """Two processes started by hand: they have no launcher to tell what happened."""

    def environment(self, rank: int, port: int, world: int = 2) -> dict[str, str]:
        return {"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_PORT": str(port)}

    def test_killed(self):
        port = free_port()
        pair = [self.start(self.environment(rank, port)) for rank in (0, 1)]
        self.wait_for_windows(pair[0])
        time.sleep(1.5)  # each tells the other once a second where it is
        pair[1].popen.send_signal(signal.SIGKILL)
        result = pair[0].finish(timeout=END_SECONDS)
        self.assertEqual(result.code, 4, result)
        self.assertRegex(result.stderr, r"rank 0 error: rank 0 lost contact in the .* at window \d+")
        self.assert_board(result.stderr)

    def test_peer_never_comes(self):
        result = self.start(self.environment(0, free_port())).finish(timeout=END_SECONDS)
        self.assertEqual(result.code, 4, result)
        said = "rank 0 waited 3 s (run.timeout) for all 2 ranks, and rank 1 never came; start the missing"
        self.assertIn(said, result.stderr)

    def test_nobody_serves(self):
        port = free_port()
        result = self.start(self.environment(1, port)).finish(timeout=END_SECONDS)
        self.assertEqual(result.code, 4, result)
        said = "rank 1 could not reach the store at 127.0.0.1:{} within 3 s".format(port)
        self.assertIn(said, result.stderr)
        self.assertIn("Check that rank 0 runs, and that MASTER_ADDR and MASTER_PORT are the same", result.stderr)

    def test_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            result = self.start(self.environment(0, port)).finish(timeout=END_SECONDS)
        self.assertEqual(result.code, 4, result)
        said = "rank 0 cannot serve the store on 127.0.0.1:{}: ".format(port)
        self.assertIn(said, result.stderr)
        self.assertIn("The port is in use or not allowed; set MASTER_PORT to a free one", result.stderr)


class Interrupted(WithData):
    """Ctrl-C reaches the launcher alone: its ranks have process groups of their own."""

    def test_once_saves_a_checkpoint(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number.name):
                running = self.started_training()
                running.popen.send_signal(number)
                result = running.finish(timeout=END_SECONDS)
                self.assertEqual(result.code, 128 + number, result)
                self.assertNotIn("who was where", result.stderr)
                summary = json.loads(self.tally.read("outputs/correct/summary.json"))
                self.assertEqual(summary["stop_signal"], number)
                self.assertGreaterEqual(summary["windows"], 3)
                step = "checkpoints/step-{:04d}/".format(summary["windows"])
                saved = {name for name in self.tally.files("artifacts") if name.startswith(step)}
                wanted = ("model.safetensors", "optimizer.safetensors", "rank-0.safetensors", "rank-1.safetensors")
                self.assertLessEqual({step + name for name in (*wanted, "manifest.json", "manifest.sha256")}, saved)
                # All that was trained is in the metrics and in the checkpoint.
                self.assertEqual(len(self.tally.metrics()), summary["windows"])
        self.succeed("evaluate", "--set", "run.device=cpu")

    def test_twice_ends_at_once(self):
        running = self.started_training()
        # A stopped rank keeps the first one from having an effect.
        running.ranks()[1].send(signal.SIGSTOP)
        running.popen.send_signal(signal.SIGINT)
        time.sleep(0.5)
        self.assertIsNone(running.popen.poll())
        start = time.monotonic()
        running.popen.send_signal(signal.SIGINT)
        result = running.finish(timeout=END_SECONDS)
        self.assertEqual(result.code, 130, result)
        self.assertLess(time.monotonic() - start, 2)
        self.assertEqual(self.tally.files("artifacts"), set())


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


if __name__ == "__main__":
    print("program {}, source {}".format(PROGRAM, SOURCE))
    unittest.main()
