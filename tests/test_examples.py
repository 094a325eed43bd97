"""Every example runs, and does what it says."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvq.bus import Bus
from tests.spark.conftest import WHY_NOT
from tests.spark.listening import Listening
from tests.spark.writing import NOW, write_bodies

EXAMPLES = Path(__file__).parents[1] / "examples"
PATIENCE_S = 40


class Programs:
    """Examples as processes, on a bus of their own. Ended after the test."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._started: list[subprocess.Popen[str]] = []

    def start(self, name: str, *words: str) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [sys.executable, "-W", "error", str(EXAMPLES / name), *words],
            env=os.environ | {"RVQ_PORT": str(self._port), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(program)
        return program

    def start_listening(self, name: str) -> subprocess.Popen[str]:
        program = self.start(name)
        assert program.stdout is not None
        assert program.stdout.readline() == "listening\n"
        return program

    def run(self, name: str, *words: str) -> str:
        return self.finish(self.start(name, *words))

    def finish(self, program: subprocess.Popen[str], ask: signal.Signals | None = None) -> str:
        """What it said, once it has ended in good order."""
        if ask is not None:
            program.send_signal(ask)
        said, complained = program.communicate(timeout=PATIENCE_S)
        assert program.returncode == 0, complained
        assert "Traceback" not in complained
        return said

    def end(self) -> None:
        for program in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)  # with the processes that it started, should it have left any
            program.communicate(timeout=PATIENCE_S)


@pytest.fixture
def programs(port: int) -> Iterator[Programs]:
    programs = Programs(port)
    yield programs
    programs.end()


@pytest.mark.parametrize("ask", [signal.SIGINT, signal.SIGTERM])
def test_a_sender_and_two_receivers_share_the_jobs(programs: Programs, ask: signal.Signals) -> None:
    receivers = [programs.start_listening("receiver.py") for _ in range(2)]
    assert programs.run("sender.py") == "all done\n"
    said = "".join(programs.finish(receiver, ask) for receiver in receivers)
    jobs = sorted(int(number) for number in re.findall(r"\{'job': (\d+)\}", said))
    assert jobs == list(range(1000))


def test_a_worker_retries_and_acknowledges(programs: Programs) -> None:
    worker = programs.start_listening("worker.py")
    assert programs.run("sender.py") == "all done\n"
    said = programs.finish(worker, signal.SIGTERM)
    assert sorted(map(int, re.findall(r"handled (\d+)", said))) == list(range(1000))
    assert said.endswith("acked 1000, retried 100, rejected 0\n")


def test_keyed_messages_stay_in_order(programs: Programs) -> None:
    said = programs.run("keyed.py").splitlines()
    assert sum(int(line.split()[2]) for line in said[:-1]) == 1000
    assert said[-1] == "every account at one receiver, and in order"


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_a_simulated_shop_charges_every_order(programs: Programs, seed: str) -> None:
    assert programs.run("simulate.py", seed).startswith("500 orders charged, ")


def test_a_farm_of_two_processes_shrinks_every_picture(programs: Programs) -> None:
    assert programs.run("thumbnails.py") == "24 pictures of 64x64 shrunk to 8x8\n"


def test_bookings_are_exact_although_one_of_the_workers_is_killed(programs: Programs) -> None:
    said = programs.run("accounts.py").splitlines()
    assert said == [f"{name}: 100 bookings, balance {sum(range(n, 300, 3))}" for n, name in enumerate(NAMES)]


NAMES = ["alice", "bob", "carol"]


def test_reminders_come_when_they_are_due(programs: Programs) -> None:
    said = programs.run("reminders.py").splitlines()
    assert said[-1] == "all done"
    reminders = [line for line in said if line.startswith("reminder: ")]
    assert reminders == [f"reminder: {what}" for what in ("the house is on fire", "tea is ready", "the meeting begins")]
    assert len(said) == 5, "nothing early, and not what was over"


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
@pytest.mark.timeout(300)
def test_readings_come_back_averaged_and_with_their_rooms(programs: Programs, port: int, tmp_path: Path) -> None:
    readings = [{"sensor": f"s{n % 3 + 1}", "celsius": 20.0 + n % 3 + n % 2} for n in range(60)]
    for n, first in enumerate((1, 61)):
        # A minute later the first window is over.
        write_bodies(
            tmp_path / "journal", readings, label="readings", first=first, recorder=n + 1, sent_at=NOW + 60 * n
        )
    with Listening(Bus(port=port), "climate") as listening:
        program = programs.start("readings.py", str(tmp_path / "journal"), str(tmp_path / "checkpoint"))
        said, complained = program.communicate(timeout=200)
    assert program.returncode == 0, complained
    assert said == "all that was there is done\n"
    told = {body["sensor"]: body for body in listening.bodies}
    start = {"readings": 20, "from": "2026-09-21T14:13:20"}
    assert told["s1"] == {"sensor": "s1", "room": "kitchen", "celsius": 20.5} | start
    assert told["s3"] == {"sensor": "s3", "room": "cellar", "celsius": 22.5} | start
    assert len(listening.bodies) == 3


def test_every_example_is_run() -> None:
    tested = Path(__file__).read_text()
    assert all(f'"{path.name}"' in tested for path in EXAMPLES.glob("*.py"))
