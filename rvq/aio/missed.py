"""What a group missed: recorded before it came, or while nobody of it was there. Owns the seam to what it gets live.

The seam is in the journal: stamps say from which message on a group has a stream. What stands before that is sent into
the group, as new messages, when all of it is recorded; what stands behind it the group gets as every group does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from rvq.aio.driver import logger
from rvq.aio.live import live_streams
from rvq.aio.past import Past, StreamPast
from rvq.aio.replay import OnSent, offer
from rvq.aio.sender import Sender
from rvq.bus import Bus, check_bus
from rvq.errors import JournalError
from rvq.journal import JournalReader, OsStorage
from rvq.journal.marker import MARKER
from rvq.journal.messages import Recorded, messages
from rvq.names import check_group, check_label

LOOK_S = 0.05
"""Between looks at what others write."""
PATIENCE_S = 10.0
"""Without a recorder, before that is said."""


async def catch_up(
    root: str | Path,
    label: str,
    group: str,
    *,
    bus: Bus | None = None,
    linger: float = 30.0,
    on_sent: OnSent | None = None,
) -> int:
    """Send into a group what was recorded before it came: with what it gets live, each message once. How many.

    Somebody of the group must be there, and a recorder; where streams go on, their journal is waited for. What is done
    then is noted in the journal, so twice is once; only what was under way when this was killed, at most a thousand
    messages, is sent again. Of those who do this at one time for one journal, one does it.
    """
    return await _catch_up(JournalReader(root), label, group, check_bus(bus), linger, linger, on_sent)


async def _catch_up(
    reader: JournalReader,
    label: str,
    group: str,
    bus: Bus,
    seam_s: float | None,
    linger: float | None,
    on_sent: OnSent | None,
) -> int:
    past = Past(reader, check_label(label), check_group(group))
    recorded = Past(reader, label, reader.group)
    async with (
        asyncio.timeout(seam_s) as patience,
        _turn(reader.root),
        Sender(label, bus=bus, linger=linger or 0.0, groups=[group]) as sender,
    ):
        await _seam(sender, past, recorded, label, bus)
        patience.reschedule(None)  # those who handle it may take their time
        return await offer(sender, reader, group, _missed(reader, label, past), linger=linger, on_sent=on_sent)


@asynccontextmanager
async def _turn(root: Path) -> AsyncIterator[None]:
    """One at a time: what one has sent and noted, the next leaves out."""
    try:
        file = OsStorage().open(root / MARKER, write=True)
    except OSError as error:
        words = f"cannot be written to ({error.strerror or error}), so nobody could note what was caught up"
        raise JournalError(root, words) from error
    try:
        while not file.lock():
            await asyncio.sleep(LOOK_S)
        yield
    finally:
        file.close()


async def _seam(sender: Sender, past: Past, recorded: Past, label: str, bus: Bus) -> None:
    """Until the journal says of each stream that goes on from where on the group has it, and has all before that."""
    while not sender.tables:
        await asyncio.sleep(LOOK_S)
    live = await live_streams(label, bus) - {sender.id}
    while True:
        await asyncio.to_thread(past.read)
        await asyncio.to_thread(recorded.read)
        if all(_is_ready(past.stream(id), recorded.stream(id)) for id in live):
            return
        await asyncio.sleep(LOOK_S)


def _is_ready(past: StreamPast, recorded: StreamPast) -> bool:
    """Is it known what of this stream the group missed, and is all of that in the journal?"""
    if past.is_over or (past.is_stamped and recorded.begin is None):
        return True  # the second is one that is not recorded, such as of somebody else who catches up
    return past.begin is not None and recorded.done_to >= past.begin - 1


def _missed(reader: JournalReader, label: str, past: Past) -> Iterator[Recorded]:
    """Of what was read of the past, and no further: of what came since it may not be known yet whose it is."""

    def wanted(sender: int, sequences: Sequence[int]) -> bool:
        begin = past.stream(sender).begin
        return begin is None or sequences[0] < begin

    for message in messages(reader, label, until=past.ends, wanted=wanted):
        stream = past.stream(message.sender)
        if (stream.begin is None or message.sequence < stream.begin) and not stream.offered.has(message.sequence):
            yield message


class CatchingUp:
    """Catches up beside a receiver of the group, until that is closed. `on_failure` is called when it cannot."""

    def __init__(
        self, reader: JournalReader, label: str, group: str, bus: Bus, on_failure: Callable[[], object]
    ) -> None:
        self._where = f"{label!r} (group {group})"
        self._on_failure = on_failure
        loop = asyncio.get_running_loop()
        self._warning = loop.call_later(PATIENCE_S, self._warn)
        self._task = loop.create_task(_catch_up(reader, label, group, bus, None, None, self._is_going))
        self._task.add_done_callback(self._on_end)

    def check(self) -> None:
        """Raises what keeps it from catching up."""
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    async def aclose(self) -> None:
        """Break off: what was sent and is not noted comes again the next time."""
        self._warning.cancel()
        if not self._task.done():
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait({self._task})

    def _warn(self) -> None:
        logger.warning(
            "%s: what was recorded waits for a recorder that tells from where on this group gets messages, or for its"
            " turn: is `rvq record` running?",
            self._where,
        )

    def _is_going(self, sent: int, undone: int) -> None:
        self._warning.cancel()

    def _on_end(self, task: asyncio.Task[int]) -> None:
        self._warning.cancel()
        if task.cancelled():
            return
        if task.exception() is None:
            logger.info("%s: caught up with %d messages of the journal", self._where, task.result())
        else:
            self._on_failure()
