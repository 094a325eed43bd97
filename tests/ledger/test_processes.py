"""Real processes at one ledger: killed between any two steps, stopped in the middle, racing. The effect is once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvq.errors import AlreadyDone, LedgerError
from tests.ledger.places import Place, mark
from tests.ledger.worker import STEPS

ROOT = Path(__file__).parents[2]


class Workers:
    """Started by a test, and gone after it."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._started: list[subprocess.Popen[str]] = []

    def start(self, how: str, *words: str) -> subprocess.Popen[str]:
        worker = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.ledger.worker", self._place.name, how, *words],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._started.append(worker)
        return worker

    def hold(self, how: str, step: str) -> subprocess.Popen[str]:
        """One that is held at this step."""
        worker = self.start(how, "--hold-at", step)
        assert worker.stdout is not None
        assert worker.stdout.readline() == f"at {step}\n"
        return worker

    def end(self) -> None:
        for worker in self._started:
            worker.kill()
            worker.communicate()


@pytest.fixture
def workers(place: Place) -> Iterator[Workers]:
    workers = Workers(place)
    yield workers
    workers.end()


async def handle(place: Place, patience: float = 20.0) -> None:
    """The same message, by another receiver."""
    async with place.ledger(patience) as ledger, ledger.transaction(mark()) as tx:
        await tx.execute(place.insert, (1,))


@pytest.mark.parametrize("how", ["async", "sync"])
@pytest.mark.parametrize("step", STEPS)
async def test_a_process_killed_at_any_step_leaves_all_or_nothing(
    place: Place, workers: Workers, how: str, step: str
) -> None:
    worker = workers.hold(how, step)
    worker.kill()
    worker.wait()
    was_done = step == "after commit"
    assert (place.effects(), place.marks()) == (([1], [1]) if was_done else ([], []))
    if was_done:
        with pytest.raises(AlreadyDone):
            await handle(place)
    else:
        await handle(place)
    assert (place.effects(), place.marks()) == ([1], [1])


@pytest.mark.parametrize("how", ["async", "sync"])
async def test_a_rival_of_a_stopped_process_waits_then_errs_and_finds_it_done_later(
    place: Place, workers: Workers, how: str
) -> None:
    worker = workers.hold(how, "after write")
    worker.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WNOWAIT)
    async with place.ledger() as onlooker:
        assert not await onlooker.is_marked(mark())  # looking waits for nobody
    with pytest.raises(LedgerError, match=r"another (process|transaction) had .* for 0\.2 s: .* stopped"):
        await handle(place, patience=0.2)
    worker.send_signal(signal.SIGCONT)
    assert worker.communicate("go on\n", timeout=60)[0] == "done 1\nend\n"
    with pytest.raises(AlreadyDone):
        await handle(place)
    assert place.effects() == [1]


async def test_a_rival_of_a_stopped_process_takes_over_when_that_is_killed(place: Place, workers: Workers) -> None:
    worker = workers.hold("async", "after write")
    worker.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WNOWAIT)
    with pytest.raises(LedgerError):
        await handle(place, patience=0.1)
    worker.kill()
    worker.wait()
    await handle(place)
    assert place.effects() == [1]


def test_two_processes_that_race_on_the_same_messages_do_each_once(place: Place, workers: Workers) -> None:
    racers = [workers.start(how, "--messages", "200") for how in ("async", "sync")]
    said = [racer.communicate(timeout=60)[0].splitlines() for racer in racers]
    assert all(lines[-1] == "end" and len(lines) == 201 for lines in said)
    assert place.effects() == place.marks() == list(range(1, 201))
    done = sorted(int(line.split()[1]) for lines in said for line in lines if line.startswith("done"))
    assert done == list(range(1, 201)), "each was done by one, and found done by the other"


def test_many_processes_may_create_the_ledger_at_once(place: Place, workers: Workers) -> None:
    crowd = [workers.start("async") for _ in range(4)]
    said = sorted(worker.communicate(timeout=60)[0] for worker in crowd)
    assert said == [*["already 1\nend\n"] * 3, "done 1\nend\n"]
    assert place.effects() == [1]
