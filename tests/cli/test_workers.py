"""A command for each message."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, cast

import pytest

from rvq.cli.quiet import Quiet
from rvq.cli.workers import RETRY_S_MAX, Workers, describe, retry_delay
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


def test_pauses_grow_and_stop_growing() -> None:
    delays = [retry_delay(attempt) for attempt in range(1, 12)]
    assert delays[:4] == [0.2, 0.4, 0.8, 1.6]
    assert delays == sorted(delays) and delays[-1] == RETRY_S_MAX == retry_delay(10**9)


def test_exit_codes_are_put_in_words() -> None:
    assert (describe(3), describe(-9), describe(-63)) == ("exit code 3", "killed by SIGKILL", "killed by signal 63")


async def test_exit_code_0_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shop = Shop(left("a", b"\xff", {"x": 1}), "cat >> all; echo >> all")
    await shop.run()
    assert shop.outcomes == ["done"] * 3 and shop.words == []
    assert (tmp_path / "all").read_bytes() == b'a\n\xff\n{"x":1}\n'


async def test_a_failed_one_is_tried_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shop = Shop(FakeReceiver("a"), 'test "$RVQ_MESSAGE_ATTEMPT" = 3', count=1)
    await shop.run()
    assert shop.outcomes == ["done"] and shop.receiver.messages[0].delays == [0.2, 0.4]
    assert shop.words == [
        "rvq-listen: 00000000000000ff-1: exit code 1 at attempt 1, again in 0.2 s",
        "rvq-listen: 00000000000000ff-1: exit code 1 at attempt 2, again in 0.4 s",
    ]


async def test_after_enough_attempts_it_is_rejected() -> None:
    shop = Shop(FakeReceiver("a"), "kill -9 $$", count=1, attempts=2)
    await shop.run()
    assert shop.outcomes == ["rejected: killed by SIGKILL at attempt 2"] and shop.workers.rejected == 1
    assert shop.words[-1] == "rvq-listen: 00000000000000ff-1 rejected: killed by SIGKILL at attempt 2"


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
    assert shop.outcomes == ["rejected: could not be run (Resource temporarily unavailable) at attempt 1"]
