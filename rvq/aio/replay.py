"""What was recorded, onto the bus again: all of it, or what was never done. What a group missed is `missed`'s.

Owns which messages go and when. They are new messages there.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from rvq.aio.driver import monotonic
from rvq.aio.live import live_streams
from rvq.aio.past import Past, offered_note
from rvq.aio.sender import Sender
from rvq.bus import Bus, check_bus
from rvq.journal import Entry, EntryKind, Journal, JournalReader, Writer
from rvq.journal.messages import Recorded, messages
from rvq.journal.runs import RunSet
from rvq.names import check_label
from rvq.wire.frames import ID_BITS
from rvq.wire.records import NO_SHARD, shard_of

OnSent = Callable[[int, int], object]

LOOK_MESSAGES = 500
"""Read from disk before the loop has its turn."""
OFFERED_MESSAGES = 1000
"""Offered again before it is noted that they are done."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which of a label's recorded messages: those that meet all that is said. Times are seconds since 1970.

    since, until: sent at or after, and before.  key: of this key.  sender: of the sender with this id.
    first, last: with sequences from first to last.
    """

    since: float | None = None
    until: float | None = None
    key: str | bytes | None = None
    sender: int | None = None
    first: int = 1
    last: int | None = None

    def has(self, message: Recorded) -> bool:
        return (
            (self.since is None or message.sent_at >= self.since)
            and (self.until is None or message.sent_at < self.until)
            and (self.key is None or message.content.key == self.key)
            and (self.sender is None or message.sender == self.sender)
            and self.first <= message.sequence
            and (self.last is None or message.sequence <= self.last)
        )

    def of(self, reader: JournalReader, label: str) -> Iterator[Recorded]:
        # What was sent at a time was heard then or later, unless clocks differ: those are read all the same.
        since = None if self.since is None else self.since - CLOCKS_S
        return filter(self.has, messages(reader, label, since=since))


CLOCKS_S = 60.0
"""How far the clocks of a sender and a recorder may be apart, for times to be found."""


async def replay(
    root: str | Path,
    label: str,
    *,
    to: str | None = None,
    group: str | None = None,
    chosen: Chosen = Chosen(),  # it never changes
    rate: float | None = None,
    speed: float | None = None,
    bus: Bus | None = None,
    linger: float = 30.0,
    on_sent: OnSent | None = None,
) -> int:
    """Send what was recorded of a label once more, as new messages with body, key and headers. How many those were.

    to: another label to send to.  group: into this group only; all others do not notice.
    rate: messages per second at most.  speed: keep the pace at which they were sent, times this.
    on_sent: called now and then with how many were sent, and how many of these are not done.
    NotDelivered after `linger` seconds in which they were not done.
    """
    found = chosen.of(JournalReader(root), check_label(label))
    groups = None if group is None else [group]
    async with Sender(to or label, bus=bus, linger=linger, groups=groups) as sender:
        return await _send(sender, found, _Pace(rate, speed), on_sent)


async def offer_again(
    root: str | Path,
    label: str,
    group: str,
    *,
    bus: Bus | None = None,
    linger: float = 30.0,
    on_sent: OnSent | None = None,
) -> int:
    """Send into a group what was its own and is not done, of senders that are gone. How many those were.

    For after a power cut. What is done then is noted in the journal, so that it is offered once; only what was under
    way when this was killed, at most a thousand messages, is offered again. Due times and times to live are kept.
    """
    bus = check_bus(bus)
    reader = JournalReader(root)
    past = Past(reader, check_label(label), group)
    live = await live_streams(label, bus)
    await asyncio.to_thread(past.read)
    found = _undone(reader, label, past, live)
    async with Sender(label, bus=bus, linger=linger, groups=[group]) as sender:
        return await offer(sender, reader, group, found, linger=linger, on_sent=on_sent, keep_times=True)


async def offer(
    sender: Sender,
    reader: JournalReader,
    group: str,
    found: Iterator[Recorded],
    *,
    linger: float | None,
    on_sent: OnSent | None = None,
    keep_times: bool = False,
) -> int:
    """Send these into a group, and note in the journal what of it is done: so it is offered once. How many."""
    sent = 0
    with ExitStack() as stack:
        writer: Writer | None = None
        while some := await asyncio.to_thread(lambda: list(islice(found, OFFERED_MESSAGES))):
            if writer is None:
                writer = await asyncio.to_thread(lambda: _open_writer(reader, sender.label, stack))
            sent += await _send(sender, iter(some), _Pace(None, None), None, keep_times=keep_times)
            await sender.flush(linger)
            await asyncio.to_thread(_note, writer, group, some)
            if on_sent is not None:
                on_sent(sent, sender.undone)
    return sent


def _open_writer(reader: JournalReader, label: str, stack: ExitStack) -> Writer:
    recorder = secrets.randbits(ID_BITS)
    journal = Journal.open(reader.root, group=reader.group, recorder=recorder, leave_damaged=True)
    stack.enter_context(journal)
    stack.callback(lambda: journal.close(time.time()))  # sealed, and then let go
    return journal.writer(label)


def _note(writer: Writer, group: str, done: Iterable[Recorded]) -> None:
    runs: dict[int, RunSet] = {}
    for message in done:
        runs.setdefault(message.sender, RunSet()).add(message.sequence, message.sequence)
    writer.add(Entry(EntryKind.NOTE, 0, None, time.time(), 0, offered_note(group, runs)))
    writer.commit(time.time(), writer.prepare())


def _undone(reader: JournalReader, label: str, past: Past, live: set[int]) -> Iterator[Recorded]:
    now = time.time()
    for message in messages(reader, label):
        content = message.content
        shard = NO_SHARD if content.key is None else shard_of(content.key)
        is_over = content.ttl is not None and message.sent_at + content.ttl <= now
        if (
            message.sender not in live
            and not is_over
            and past.stream(message.sender).is_undone(message.sequence, shard)
        ):
            yield message


async def _send(
    sender: Sender, found: Iterator[Recorded], pace: _Pace, on_sent: OnSent | None, *, keep_times: bool = False
) -> int:
    sent = 0
    while some := await asyncio.to_thread(lambda: list(islice(found, LOOK_MESSAGES))):
        for message in some:
            await pace.wait_for(message)
            content = message.content
            times = _times_of(message) if keep_times else {}
            await sender.send(content.body, key=content.key, headers=content.headers, **times)
            sent += 1
        if on_sent is not None:
            on_sent(sent, sender.undone)
    return sent


def _times_of(message: Recorded) -> dict[str, Any]:
    content = message.content
    times: dict[str, Any] = {}
    if content.due_at is not None:
        times["due"] = datetime.fromtimestamp(content.due_at, UTC)
    if content.ttl is not None:
        times["ttl"] = max(0.001, message.sent_at + content.ttl - time.time())
    if content.urgent:
        times["urgent"] = True
    return times


class _Pace:
    """When the next one is sent."""

    def __init__(self, rate: float | None, speed: float | None) -> None:
        self._rate = rate
        self._speed = speed
        self._began = self._first_at = 0.0
        self._count = 0

    async def wait_for(self, message: Recorded) -> None:
        if self._rate is None and self._speed is None:
            return
        if not self._count:
            self._began, self._first_at = monotonic(), message.sent_at
        due = self._began
        if self._speed is not None:
            due += (message.sent_at - self._first_at) / self._speed
        if self._rate is not None:
            due = max(due, self._began + self._count / self._rate)
        self._count += 1
        pause = due - monotonic()
        if pause > 0:
            await asyncio.sleep(pause)
