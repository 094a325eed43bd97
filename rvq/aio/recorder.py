"""`rvq.Recorder`: labels onto the disk. Owns when what is written counts as done; the files are `journal`'s.

One receiver of a group on each label, whose *done* is *on disk*: so whoever waits for its messages waits for the disk.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple

from rvq.aio.driver import Signal, logger, monotonic
from rvq.aio.recording import Recording
from rvq.bus import Bus, check_bus
from rvq.core.recorder import JOURNAL, RecorderMachine
from rvq.core.stats import Stats
from rvq.core.table import TableView
from rvq.core.taken import Taken
from rvq.errors import BadArgument, BadLabel, Closed, JournalError
from rvq.journal import Journal, JournalReader, expire
from rvq.journal.journal import Prepared
from rvq.journal.lately import stored_lately
from rvq.journal.runs import RunSet
from rvq.journal.writer import SEGMENT_BYTES
from rvq.names import check_group, check_label
from rvq.wire.frames import ID_BITS

Sync = Literal["batch", "never"] | float

AGAIN_S = 1.0
"""Before what the disk refused is tried again."""
LOOK_S = 5.0
"""Between looks whether an hour is over, and something too old, when nothing else happens."""


class Batch(NamedTuple):
    """What goes to disk together."""

    prepared: Prepared
    taken: list[tuple[Recording, list[Taken]]]


class Recorder:
    """Records labels into the folder of a journal. Several may share the work, in one folder or in several.

    labels: what to record.  group: who shares the work; another group, in another folder, is another copy.
    sync: "batch": a message is done when it is synced; a number: it is done when it is written, and synced so many
        seconds later at most, which is what a power cut can lose; "never": when to sync is the system's affair.
    keep: seconds after which whole hours are deleted; for ever unless told.
    on_table: called with a label and its table whenever that changes.
    """

    def __init__(
        self,
        root: str | Path,
        labels: str | Iterable[str],
        *,
        group: str = JOURNAL,
        bus: Bus | None = None,
        sync: Sync = "batch",
        keep: float | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        on_table: Callable[[str, TableView], None] | None = None,
    ) -> None:
        self.root = Path(root)
        self.labels = _check_labels(labels)
        self.group = check_group(group)
        self.bus = check_bus(bus)
        self.id = secrets.randbits(ID_BITS) or 1
        self.failing: JournalError | None = None
        """What the disk says at present; None while it takes what it is given."""
        self._sync = _check_sync(sync)
        self._keep = None if keep is None else _check_seconds("keep", keep)
        self._segment_bytes = segment_bytes
        self._on_table = on_table
        self._journal: Journal | None = None
        self._recordings: list[Recording] = []
        self._work = Signal()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="rvq-journal")
        self._writing: asyncio.Task[None] | None = None
        self._leaving = self._closed = False
        self._synced_at = self._looked_at = 0.0

    # --- lifetime -------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Recorder:
        if self._journal is not None or self._closed:
            raise Closed(f"this recorder of {self.root} was opened before: make another")
        loop = asyncio.get_running_loop()
        journal, known = await loop.run_in_executor(self._threads, self._open_journal)
        self._journal = journal
        try:
            for label in self.labels:
                writer = journal.writer(label)
                own = (label, self.id, self.group, self.bus, writer)
                self._recordings.append(Recording(*own, self._work.fire, self._on_table, known[label]))
        except BaseException:
            for recording in self._recordings:
                recording.close()
            journal.abort()
            self._threads.shutdown()
            raise
        self._writing = asyncio.create_task(self._write_all())
        return self

    def _open_journal(self) -> tuple[Journal, dict[str, dict[int, RunSet]]]:
        """And what of each label may be offered once more, though it is there."""
        journal = Journal.open(
            self.root,
            group=self.group,
            recorder=self.id,
            segment_bytes=self._segment_bytes,
            leave_damaged=True,
        )
        for damage in journal.recovery.damaged:
            # What comes now is recorded all the same: it would be lost too if an old segment kept us from it.
            logger.error("journal %s: %s", self.root, damage)
        for found in journal.recovery.recovered:
            if found.cut_bytes:
                logger.warning("journal %s: %s: cut %d bytes that were never synced", self.root, *found[::2])
        try:
            reader = JournalReader(self.root)
            return journal, {label: self._stored_lately(reader, label) for label in self.labels}
        except BaseException:
            journal.abort()
            raise

    def _stored_lately(self, reader: JournalReader, label: str) -> dict[int, RunSet]:
        try:
            return stored_lately(reader, label)
        except JournalError as error:  # damaged, or just expired: what is offered again is then stored again
            logger.warning("journal %s: what %s has of late cannot be read: %s", self.root, label, error)
            return {}

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def leave(self) -> None:
        """Begin to leave: what is ours is still recorded, then `wait` returns."""
        self._leaving = True
        for recording in self._recordings:
            recording.leave(drain=True)
        self._work.fire()

    async def wait(self) -> None:
        """Until it has left. What goes wrong for good is raised."""
        if self._writing is None:
            raise Closed(f"this recorder of {self.root} is not open yet: use `async with rvq.Recorder(...)`")
        await asyncio.shield(self._writing)

    async def aclose(self) -> None:
        """Leave now: what is not on disk is handed back, what is there is sealed. Twice is fine."""
        if self._closed or self._journal is None:
            self._closed = True
            return
        self._closed = True
        self._work.fire()
        try:
            if self._writing is not None:
                await self._writing  # what is on its way to the disk gets there, and is done
        finally:
            await self._end()

    async def _end(self) -> None:
        try:
            await asyncio.gather(*(recording.hand_back() for recording in self._recordings))
            await asyncio.get_running_loop().run_in_executor(self._threads, self._seal)
        finally:
            for recording in self._recordings:
                recording.close()
            self._threads.shutdown(wait=False)

    def _seal(self) -> None:
        assert self._journal is not None
        try:
            self._journal.close(time.time())
        except JournalError:
            self._journal.abort()
            raise

    # --- onto the disk --------------------------------------------------------------------------------------------

    async def _write_all(self) -> None:
        """Batch after batch: what comes while one is written is the next, so one sync is for many frames."""
        while not (self._closed or self._has_left):
            batch = self._gather()
            if batch is None:
                await self._wait_for_work()
            else:
                await self._write(batch)
            await self._look_after()

    @property
    def _has_left(self) -> bool:
        return bool(self._recordings) and all(recording.left for recording in self._recordings)

    def _gather(self) -> Batch | None:
        """What there is; None if there is nothing."""
        assert self._journal is not None
        taken = [(recording, recording.take(monotonic())) for recording in self._recordings]
        prepared = [one for one in self._journal.prepare() if one[1].entries]
        return Batch(prepared, taken) if prepared or any(some for _, some in taken) else None

    async def _write(self, batch: Batch) -> None:
        """Until the disk has taken it. Meanwhile senders find their windows full, and wait."""
        while not await self._commit(batch.prepared, self._sync == "batch"):
            if self._closed:
                return  # it is handed back
            await asyncio.sleep(AGAIN_S)
        now = monotonic()
        for recording, taken in batch.taken:
            recording.stored(now, taken)

    async def _commit(self, prepared: Prepared, sync: bool) -> bool:
        assert self._journal is not None
        journal, loop = self._journal, asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._threads, lambda: journal.commit(time.time(), prepared, sync=sync))
        except JournalError as error:
            if self.failing is None or str(self.failing) != str(error):
                logger.error("journal %s: nothing is recorded, and senders will wait: %s", self.root, error)
            self.failing = error
            return False
        if self.failing is not None:
            self.failing = None
            logger.warning("journal %s: records again", self.root)
        if sync:
            self._synced_at = monotonic()
        return True

    async def _wait_for_work(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S if isinstance(self._sync, str) else min(LOOK_S, self._sync)):
                await self._work.wait()

    async def _look_after(self) -> None:
        """Sync in time, seal what is over, drop what is too old."""
        assert self._journal is not None
        now = monotonic()
        if not isinstance(self._sync, str) and now >= self._synced_at + self._sync:
            await self._commit(self._journal.prepare(), True)
        if now < self._looked_at + LOOK_S:
            return
        self._looked_at = now
        await self._commit(self._journal.prepare(), self._sync == "batch")
        if self._keep is not None:
            before = time.time() - self._keep
            try:
                await asyncio.get_running_loop().run_in_executor(self._threads, lambda: expire(self.root, before))
            except JournalError as error:
                logger.error("journal %s: what is too old stays: %s", self.root, error)

    # --- looking --------------------------------------------------------------------------------------------------

    @property
    def machines(self) -> dict[str, RecorderMachine]:
        """By label, for those who only look, from another thread."""
        return {recording.label: recording.machine for recording in self._recordings}

    @property
    def stats(self) -> dict[str, Stats]:
        """Counts since the start, by label."""
        return {recording.label: recording.stats for recording in self._recordings}

    @property
    def tables(self) -> dict[str, TableView | None]:
        """The table of this recorder's group, by label."""
        return {recording.label: recording.table for recording in self._recordings}

    def __repr__(self) -> str:
        return f"<Recorder {self.id:016x} of {', '.join(map(repr, self.labels))} in {str(self.root)!r}>"


def _check_labels(labels: str | Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(check_label(label) for label in ([labels] if isinstance(labels, str) else labels)))
    if not found:
        raise BadLabel("no label to record: give one or more, such as 'work'")
    return found


def _check_sync(sync: Sync) -> Sync:
    if sync in ("batch", "never"):
        return sync
    if isinstance(sync, str):
        raise BadArgument(f'sync={sync!r} is no way to sync: give "batch", "never", or seconds')
    return _check_seconds("sync", sync)


def _check_seconds(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise BadArgument(f"{name}={value!r} is not a duration: give seconds above 0")
    return float(value)
