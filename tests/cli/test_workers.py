"""A command for each message."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

import rvq
from rvq.cli.quiet import Quiet
from rvq.cli.workers import Workers, describe
from tests.cli.fakes import FakeReceiver, overheard


class Shop:
    """Workers with a fake receiver."""

    def __init__(self, receiver: FakeReceiver, command: str, idle: float | None = None, **options: Any) -> None:
        words, self._stream = overheard()
        self.receiver = receiver
        self.workers = Workers(
            cast(Any, receiver), command, words, Quiet(idle, receiver.leave), prog="rvq-listen", **options
        )

    async def run(self) -> None:
        await asyncio.wait_for(self.workers.run(), 20)

    @property
    def outcomes(self) -> list[str]:
        return [message.outcome for message in self.receiver.messages]

    @property
    def words(self) -> list[str]:
        return self._stream.getvalue().splitlines()


def left(*bodies: Any) -> FakeReceiver:
    """Gives these, and then ends."""
    receiver = FakeReceiver(bodies)
    receiver.leave()
    return receiver


def test_exit_codes_are_put_in_words() -> None:
    assert (describe(3), describe(-9), describe(-63)) == ("exit code 3", "killed by SIGKILL", "killed by signal 63")


async def test_exit_code_0_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shop = Shop(left("a", b"\xff", {"x": 1}), "cat >> all; echo >> all")
    await shop.run()
    assert shop.outcomes == ["done"] * 3 and shop.words == []
    assert (tmp_path / "all").read_bytes() == b'a\n\xff\n{"x":1}\n'


async def test_a_failed_one_is_tried_again_at_once_and_then_as_handlers_are(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(FakeReceiver("a"), 'test "$RVQ_MESSAGE_ATTEMPT" = 4', count=1)
    monkeypatch.setattr(shop.workers, "_random", Random(7))
    await shop.run()
    chance = Random(7)
    pauses = [rvq.Backoff().pause(attempt, chance) for attempt in (1, 2, 3)]
    assert shop.outcomes == ["done"] and shop.receiver.messages[0].delays == pauses and pauses[0] == 0
    assert shop.words == [
        "rvq-listen: 00000000000000ff-1: exit code 1 at attempt 1, again at once",
        f"rvq-listen: 00000000000000ff-1: exit code 1 at attempt 2, again in {pauses[1]:.1f} s",
        f"rvq-listen: 00000000000000ff-1: exit code 1 at attempt 3, again in {pauses[2]:.1f} s",
    ]


async def test_after_enough_attempts_it_is_buried_and_said_where() -> None:
    shop = Shop(FakeReceiver("a"), "kill -9 $$", count=1, attempts=2)
    await shop.run()
    assert shop.outcomes == ["buried after 2: killed by SIGKILL"] and shop.workers.buried == 1
    assert shop.words[-1] == (
        "rvq-listen: 00000000000000ff-1: killed by SIGKILL, given up after 2 attempts:"
        " now on work.dead (rvq dead ls work)"
    )


async def test_one_that_ended_its_processes_often_enough_is_buried_without_a_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    receiver = FakeReceiver("ab")
    receiver.messages[0].attempt = 4
    receiver.messages[1].attempt = 3
    shop = Shop(receiver, "cat >> tried", count=2, attempts=3)
    await shop.run()
    assert shop.outcomes == ["buried after 3: its receiver ended or was cut off at each of 3 attempts", "done"]
    assert (tmp_path / "tried").read_text() == "b" and shop.workers.buried == 1


async def test_a_dead_letter_that_fails_in_turn_has_nowhere_to_go() -> None:
    receiver = FakeReceiver("a")
    receiver.messages[0].label = "work.dead"
    shop = Shop(receiver, "false", count=1, attempts=1)
    await shop.run()
    assert shop.words[-1].endswith("given up after 1 attempt: dropped, since it was a dead letter")


async def test_a_command_that_does_not_read_is_fine() -> None:
    shop = Shop(left("x" * 1_000_000), "true")
    await shop.run()
    assert shop.outcomes == ["done"]


async def test_no_more_run_at_once_than_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Each counts who is here with it.
    command = 'touch "$RVQ_MESSAGE_ID"; ls | grep -c ff- >&3; sleep 0.05; rm "$RVQ_MESSAGE_ID"'
    shop = Shop(left(*range(12)), f"exec 3>>{tmp_path}/counts; {command}", concurrency=3)
    await shop.run()
    seen = [int(line) for line in (tmp_path / "counts").read_text().split()]
    assert len(seen) == 12 and max(seen) == 3


async def test_no_more_are_begun_than_count() -> None:
    shop = Shop(FakeReceiver(range(10)), "true", concurrency=4, count=6)
    await shop.run()
    assert sorted(shop.outcomes) == [""] * 4 + ["done"] * 6
    assert shop.receiver.asked == 6


async def test_quiet_counts_only_while_nothing_runs() -> None:
    shop = Shop(FakeReceiver("a"), "sleep 0.2", idle=0.05)
    await shop.run()
    assert shop.outcomes == ["done"]


async def test_a_command_whose_message_is_anothers_now_is_stopped_and_may_come_back() -> None:
    shop = Shop(left("a"), 'test "$RVQ_MESSAGE_ATTEMPT" = 2 || sleep 60')
    message = shop.receiver.messages[0]

    asyncio.get_running_loop().call_later(0.1, message.lost.set)
    retry = message.retry

    def come_back(delay: float = 0.0) -> None:
        message.lost.clear()
        retry(delay)

    message.retry = come_back  # type: ignore[method-assign]
    await shop.run()
    assert shop.outcomes == ["done"] and message.delays == [0.0]
    assert shop.words == ["rvq-listen: 00000000000000ff-1: no longer ours to handle, killed by SIGTERM"]


async def test_a_command_that_ends_well_only_because_it_was_stopped_has_done_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trap = 'trap "exit 0" TERM; mv $(mktemp -p .) begun; sleep 60 & wait'
    shop = Shop(left("a"), f'test "$RVQ_MESSAGE_ATTEMPT" = 2 || {{ {trap}; }}')
    message = shop.receiver.messages[0]
    retry = message.retry

    def come_back(delay: float = 0.0) -> None:
        message.lost.clear()
        retry(delay)

    message.retry = come_back  # type: ignore[method-assign]
    running = asyncio.create_task(shop.run())
    while not (tmp_path / "begun").exists():
        await asyncio.sleep(0.01)
    message.lost.set()
    await running
    assert shop.outcomes == ["done"] and message.delays == [0.0]
    assert shop.words == ["rvq-listen: 00000000000000ff-1: no longer ours to handle, stopped"]


async def test_cancelled_it_stops_commands_and_what_they_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = Shop(FakeReceiver("a"), "sleep 60 & echo $! > child; mv child pid; wait")
    task = asyncio.create_task(shop.workers.run())
    while not (tmp_path / "pid").exists():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert shop.outcomes == [""]
    child = int((tmp_path / "pid").read_text())
    while _is_alive(child):
        await asyncio.sleep(0.01)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def test_a_command_that_cannot_be_started_is_a_failed_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(asyncio, "create_subprocess_shell", refuse)
    shop = Shop(FakeReceiver("a"), "true", count=1, attempts=1)
    await shop.run()
    assert shop.outcomes == ["buried after 1: could not be run (Resource temporarily unavailable)"]
