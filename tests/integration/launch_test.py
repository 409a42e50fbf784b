"""Ranks that others start: torchrun, Slurm, MPI and a person with two terminals. All train the same losses."""

import os
import re
import socket
import unittest
from collections.abc import Callable

from processes import in_session
from tally_program import PROGRAM, SOURCE, TallyProgram, TallyTest

TORCHRUN = os.environ.get("TALLY_TORCHRUN", "")
OPTIONS = (
    "--set", "run.device=cpu", "--set", "window.batch_size=2", "--set", "train.updates=4", "--set", "run.timeout=20",
)  # fmt: skip
TRAIN = ("train", "recipes/correct.toml", *OPTIONS)


def free_port(ports=range(30000, 40000)) -> int:
    for port in ports:
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
    raise AssertionError("no port of {} is free".format(ports))


def by_hand(port: int) -> Callable[[int], dict[str, str]]:
    """torchrun's contract, as a person would write it: the environment of each of two ranks."""
    return lambda rank: {
        "RANK": str(rank),
        "WORLD_SIZE": "2",
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


class Launched(TallyTest):
    @classmethod
    def setUpClass(cls):
        cls.own = TallyProgram()
        cls.addClassCleanup(cls.own.close)
        for arguments in (("prepare", *OPTIONS), (*TRAIN, "--ranks", "2")):
            result = cls.own.run(*arguments)
            if result.code != 0:
                raise AssertionError(str(result))

    def setUp(self):
        super().setUp()
        (self.tally.folder / "data").symlink_to(self.own.folder / "data")

    def run_pair(self, environment, arguments=(TRAIN, TRAIN)):
        """The results of two processes, whose environments `environment(rank)` gives."""
        pair = [self.tally.start(*arguments[rank], environment=environment(rank)) for rank in (0, 1)]
        for running in pair:
            self.addCleanup(running.end)
        return [running.finish(timeout=60) for running in pair]

    def assert_same_run(self, launcher: str, stderr: str) -> None:
        """The losses of our own launcher, to the last bit, and both ranks say who started them."""
        self.assertEqual(self.tally.losses(), self.own.losses())
        self.assertEqual(len(self.tally.losses()), 4)
        model = "artifacts/checkpoints/step-0004/model.safetensors"
        self.assertEqual(*((run.folder / model).read_bytes() for run in (self.tally, self.own)))
        for rank in (0, 1):
            self.assertIn("rank {} of 2 ({})".format(rank, launcher), stderr)

    def assert_trains_alike(self, launcher: str, environment) -> None:
        results = self.run_pair(environment)
        for result in results:
            self.assertEqual(result.code, 0, result)
        self.assert_same_run(launcher, results[0].stderr + results[1].stderr)


class ByHand(Launched):
    def test_torchrun_contract_without_agent_store(self):
        self.assert_trains_alike("torchrun", by_hand(free_port()))

    def test_slurm(self):
        """The port follows from the job's number, so that nobody has to choose one."""
        port = free_port(range(20000, 30000))
        self.assert_trains_alike(
            "Slurm",
            lambda rank: {
                "SLURM_JOB_ID": str(port - 20000 + 40000), "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2",
                "SLURM_STEP_NUM_NODES": "1", "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank),
            },
        )  # fmt: skip

    def test_open_mpi(self):
        port = free_port()
        self.assert_trains_alike(
            "MPI",
            lambda rank: {
                "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2", "MASTER_PORT": str(port),
                "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
            },
        )  # fmt: skip

    def test_mpich(self):
        port = free_port()
        self.assert_trains_alike("MPI", lambda rank: {"PMI_RANK": str(rank), "PMI_SIZE": "2", "MASTER_PORT": str(port)})

    def refused(self, environment, *words: str) -> None:
        result = self.tally.run(*TRAIN, environment=environment, timeout=30)
        self.assert_refused(result, 2, *words)

    def test_half_an_environment(self):
        self.refused({"RANK": "0"}, "RANK", "WORLD_SIZE", "set both, or unset both to launch with --ranks")

    def test_rank_outside_of_the_world(self):
        self.refused({"RANK": "2", "WORLD_SIZE": "2"}, "the environment's RANK is '2'", "an integer from 0 to 1")

    def test_different_recipes(self):
        other = ("train", "recipes/wrong.toml", *OPTIONS)
        for result in self.run_pair(by_hand(free_port()), (TRAIN, other)):
            self.assertEqual(result.code, 2, result)
            self.assertIn("ranks do not run the same job: ", result.stderr)
            for words in (r"'correct' \w{64} on rank 0", r"'wrong' \w{64} on rank 1", "start every rank with the same"):
                self.assertTrue(re.search(words, result.stderr), result)

    def test_different_values(self):
        for result in self.run_pair(by_hand(free_port()), (TRAIN, (*TRAIN, "--set", "optimizer.learning_rate=0.1"))):
            self.assertEqual(result.code, 2, result)
            digests = re.findall(
                r"the resolved recipe has 'correct' (\w{64}) on rank \d and 'correct' (\w{64})", result.stderr
            )
            self.assertNotEqual(*digests[0])


@unittest.skipUnless(TORCHRUN, "torchrun was not found beside the installation of torch (TALLY_TORCHRUN names it)")
class Torchrun(Launched):
    PROGRAM = (TORCHRUN, "--no-python", "--standalone", "--nproc-per-node", "2", str(PROGRAM))

    def test_same_losses(self):
        running = self.tally.start(*TRAIN, program=self.PROGRAM)
        self.addCleanup(running.end)
        result = running.finish(timeout=90)
        self.assertEqual(result.code, 0, result)
        self.assert_same_run("torchrun", result.stderr)

    def test_fault_of_the_recipe_ends_all(self):
        arguments = (*TRAIN, "--set", "run.timeut=1")
        running = self.tally.start(*arguments, program=self.PROGRAM)
        self.addCleanup(running.end)
        # torchrun shows a stack trace of its own, so only what tally leaves is judged.
        _, stderr = running.popen.communicate(timeout=90)
        self.assertNotEqual(running.popen.returncode, 0)
        self.assertIn('did you mean "timeout"?', stderr)
        self.assertRegex(stderr, r"exitcode *: 2 ")
        self.assertEqual(in_session(running.pid), [])


if __name__ == "__main__":
    print("program {}, source {}".format(PROGRAM, SOURCE))
    unittest.main()
