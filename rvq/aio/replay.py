"""`rvq.replay`: what was recorded, onto the bus again. Owns which messages go and when; they are new messages there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rvq.aio.driver import monotonic
from rvq.aio.sender import Sender
from rvq.bus import Bus
from rvq.journal import JournalReader
from rvq.journal.messages import Recorded, messages
from rvq.names import check_group, check_label

LOOK_MESSAGES = 500
"""Read from disk before the loop has its turn."""


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
    chosen: Chosen = Chosen(),  # noqa: B008  # it never changes
    rate: float | None = None,
    speed: float | None = None,
    bus: Bus | None = None,
    linger: float = 30.0,
    on_sent: Callable[[int, int], None] | None = None,
) -> int:
    """Send what was recorded of a label once more, as new messages with body, key and headers. How many those were.

    to: another label to send to.  group: into this group only; all others do not notice.
    rate: messages per second at most.  speed: keep the pace at which they were sent, times this.
    on_sent: called now and then with how many were sent, and how many of these are not done.
    NotDelivered after `linger` seconds in which they were not done.
    """
    check_label(label)
    reader = JournalReader(root)
    groups = None if group is None else [check_group(group)]
    sent = 0
    async with Sender(to or label, bus=bus, linger=linger, groups=groups) as sender:
        pace = _Pace(rate, speed)
        found = chosen.of(reader, label)
        while some := await asyncio.to_thread(lambda: list(islice(found, LOOK_MESSAGES))):
            for message in some:
                await pace.wait_for(message)
                content = message.content
                await sender.send(content.body, key=content.key, headers=content.headers)
                sent += 1
            if on_sent is not None:
                on_sent(sent, sender.undone)
    return sent


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
