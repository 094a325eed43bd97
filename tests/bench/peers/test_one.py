"""One measurement: what is lost, repeated or invented is noticed, also when a whole system cheats."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from bench.group.fleet import Trouble
from bench.peers import one
from bench.peers.board import NUMBER_BYTES, SENDER_SHIFT, Board, Tally, make_bodies
from bench.peers.one import measure, run_here
from bench.peers.systems import SYSTEMS, Job, System

TWO_SENDERS = 1 << SENDER_SHIFT
Cheat = Callable[[list[bytes]], list[bytes]]


@pytest.mark.parametrize(
    ("handled", "wrong"),
    [
        ([[0, 2], [1, 3]], 0),
        ([[0, 2], [1]], 1),
        ([[0, 2], [1, 3, 3]], 1),
        ([[0, 2, 1], [1, 3]], 1),
        ([[0, 2], [1, 4]], 2),
        ([[0, 2], [1, 3, TWO_SENDERS]], 1),
        ([[], []], 4),
    ],
    ids=["once", "lost", "repeated by one", "repeated by two", "another instead", "of a stranger", "nothing at all"],
)
def test_each_message_of_one_sender_must_be_there_once(handled: list[list[int]], wrong: int) -> None:
    assert one._wrong(Job("rvq batches", 1, 2, 4, 100), handled) == wrong


@pytest.mark.parametrize(
    ("handled", "wrong"),
    [
        ([[0, TWO_SENDERS + 1], [1, TWO_SENDERS]], 0),
        ([[0, 1], [0, 1]], 4),
        ([[0, TWO_SENDERS + 1], [1, TWO_SENDERS, TWO_SENDERS]], 1),
    ],
    ids=["once", "one sender's twice, the other's never", "repeated"],
)
def test_each_message_of_two_senders_must_be_there_once(handled: list[list[int]], wrong: int) -> None:
    assert one._wrong(Job("rvq batches", 2, 2, 2, 100), handled) == wrong


def made_up_system(cheat: Cheat) -> System:
    """Its one receiver makes up what it was sent, and how it cheats."""

    def receive(job: Job, board: Board, process: int, tally: Tally) -> None:
        board.set_ready(process)
        board.wait_for_go()
        for body in cheat(make_bodies(0, job.count, job.size)):
            tally.seen += body[:NUMBER_BYTES]
        tally.tell()
        board.wait_for_stop()

    def send(job: Job, board: Board, number: int, bodies: list[bytes]) -> None:
        board.set_ready(job.receivers + number)
        board.wait_for_go()
        board.set_done(job.receivers + number)
        board.wait_for_stop()

    return System("made up", "made up", receive, send, 1)


@pytest.mark.parametrize(
    ("cheat", "wrong"),
    [
        (lambda bodies: bodies, 0),
        (lambda bodies: [*bodies, bodies[3]], 1),
        (lambda bodies: [*bodies[1:], bodies[3]], 2),
        (lambda bodies: [*bodies[1:], bytes(7) + b"\x01"], 2),
    ],
    ids=["honest", "repeats one", "repeats one in place of another", "invents one in place of another"],
)
def test_a_system_that_cheats_is_found_out(cheat: Cheat, wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SYSTEMS, "made up", made_up_system(cheat))
    assert run_here(Job("made up", 1, 1, 10, 100)).wrong == wrong


def test_a_system_that_loses_a_message_is_never_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SYSTEMS, "made up", made_up_system(lambda bodies: bodies[1:]))
    counted = one.Processes.handled.fget
    assert counted is not None

    def until(self: one.Processes, words: str, most: float, so: Callable[[], bool]) -> None:
        """Waits for what does happen, and then no longer."""
        wait(self, words, most, so if words == "not ready" else lambda: counted(self) == 9)
        wait(self, words, most if words == "not ready" else 0.0, so)

    wait = one.Processes.until
    monkeypatch.setattr(one.Processes, "until", until)
    monkeypatch.setattr(one, "LEAVE_S_MAX", 0.0)
    with pytest.raises(Trouble, match=r"not done after 0 s \(9 of 10 handled\)"):
        run_here(Job("made up", 1, 1, 10, 100))


def test_a_process_that_breaks_is_trouble_with_its_words() -> None:
    with pytest.raises(Trouble, match=r"No such file or directory: .*rvq-there-is-none"):
        measure(Job("rvq batches", 1, 1, 10, 100, namespaces=["rvq-there-is-none"] * 2))


def test_without_offload_rvq_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(one.NO_OFFLOAD, "1")
    assert one.NO_OFFLOAD not in one._environment(Job("rvq batches", 1, 1, 10, 100))
    assert one._environment(Job("rvq batches", 1, 1, 10, 100, offload=False))[one.NO_OFFLOAD] == "1"
    assert os.environ[one.NO_OFFLOAD] == "1"


def test_mixed_lengths_pass_once_too() -> None:
    assert measure(Job("rvq batches", 1, 2, 2000, 100, spread=50)).wrong == 0
