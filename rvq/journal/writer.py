"""Writing one label's entries. Owns what is added and not on disk yet, and when a segment ends and the next begins.

Entries go through three states: added, written, synced. A batch leaves this module only when it is synced: until then
it is kept, so that whatever fails, the next commit can write it again, somewhere else if need be.

Threads: `add` and `prepare` belong to one thread (the loop). `commit` of a prepared batch may run in any other; the
file and the counters are its alone. What both sides touch is one deque, whose ends are safe to use from two threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from rvq.errors import JournalError
from rvq.journal.entries import Entry, check_entry
from rvq.journal.layout import Header
from rvq.journal.places import SegmentName, label_folder, part_at
from rvq.journal.segment import SegmentWriter
from rvq.journal.storage import Storage
from rvq.limits import JOURNAL_UNSYNCED_BYTES, MIB

SEGMENT_BYTES: Final = 256 * MIB
"""A segment that has reached this is sealed at the next commit."""


class Position(NamedTuple):
    """A place between two blocks of a label. Made of plain values, so that it can be kept as JSON."""

    segment: str
    """`part=YYYYMMDDHH/<recorder>-<counter>.rvqj`."""
    position: int
    """Byte of the segment at which the next block begins."""
    row: int
    """Messages of the segment before it."""


class Batch(NamedTuple):
    """Entries that were taken together to be committed together."""

    number: int
    """1, 2, 3 … for one writer."""
    entries: list[Entry]
    size: int
    """Bytes of all payloads."""


class Writer:
    """The writing end of one label in one recorder."""

    def __init__(
        self,
        storage: Storage,
        journal: Path,
        label: str,
        group: str,
        recorder: int,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.label = label
        self._storage = storage
        self._folder = journal / label_folder(label)
        self._group = group
        self._recorder = recorder
        self._segment_bytes = segment_bytes
        self._added: list[Entry] = []
        self._added_bytes = 0
        self._prepared: deque[Batch] = deque()
        self._taken = 0
        # From here on: touched only under the lock, by whoever commits.
        self._lock = threading.Lock()
        self._pending: list[Batch] = []
        self._unsynced: list[Batch] = []
        self._unsynced_bytes = 0
        self._synced = 0
        self._end: Position | None = None
        self._segment: SegmentWriter | None = None
        self._name = SegmentName("", recorder, 0)
        self._next: SegmentName | None = None
        self._abandoned: SegmentWriter | None = None
        self._prior_length = 0
        self._is_closed = False

    # --- the side of the loop -------------------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """Takes an entry for the next batch. ValueError if it does not fit the format. Hot."""
        self._added_bytes += check_entry(entry)
        self._added.append(entry)

    @property
    def added_bytes(self) -> int:
        """Bytes of payload that the next batch would have."""
        return self._added_bytes

    def prepare(self) -> Batch:
        """Takes everything added since as one batch, to be committed in another thread."""
        self._taken += bool(self._added)
        batch = Batch(self._taken, self._added, self._added_bytes)
        if batch.entries:
            self._prepared.append(batch)
        self._added, self._added_bytes = [], 0
        return batch

    # --- the side of the disk -------------------------------------------------------------------------------------

    @property
    def synced(self) -> int:
        """The number of the last batch that is on disk, with all before it."""
        return self._synced

    def commit(self, now: float, batch: Batch | None = None, *, sync: bool = True) -> Position | None:
        """Writes everything up to this batch, by default everything added, and syncs it. Where the journal ends then.

        JournalError if that fails: nothing of it counts as done, and another call tries all of it again. With
        `sync=False` it is written and not yet done; the next sync is for it as well. `now` is the wall clock.
        """
        through = (batch or self.prepare()).number
        with self._lock:
            self._check_open()
            self._do(lambda: self._commit(now, through, sync))
            return self._end

    def close(self, now: float) -> None:
        """Commits what was added and seals the segment. After a JournalError it can be called again, or `abort`."""
        with self._lock:
            if self._is_closed:
                return
        self.commit(now)
        with self._lock:
            self._do(self._seal)
            self._release()

    def abort(self) -> None:
        """Gives the files back as they are: the next recorder finds there what was synced, and perhaps more."""
        with self._lock:
            self._release()

    def _release(self) -> None:
        self._is_closed = True
        for segment in (self._segment, self._abandoned):
            if segment is not None:
                segment.close()
        self._segment = self._abandoned = None

    def _check_open(self) -> None:
        if self._is_closed:
            raise JournalError(self._folder, "this writer is closed: open the journal again")

    def _do(self, step: Callable[[], None]) -> None:
        try:
            step()
        except OSError as error:
            path = error.filename or (self._segment.path if self._segment else self._folder)
            words = f"{error.strerror or error}: make room or repair the disk, then commit again; nothing was lost yet"
            raise JournalError(path, words) from error

    def _commit(self, now: float, through: int, sync: bool) -> None:
        while self._prepared and self._prepared[0].number <= through:
            self._pending.append(self._prepared.popleft())
        self._seal_if_over(now)
        if self._pending:
            segment = self._segment or self._create(now)
            segment.append([entry for batch in self._pending for entry in batch.entries])
            self._unsynced += self._pending
            self._unsynced_bytes += sum(batch.size for batch in self._pending)
            self._pending = []
        if sync or self._unsynced_bytes > JOURNAL_UNSYNCED_BYTES:
            self._sync()

    def _seal_if_over(self, now: float) -> None:
        segment = self._segment
        # A clock that was put back does not open an hour again: the parts of one recorder stay in order.
        if segment is not None and (segment.written.length >= self._segment_bytes or part_at(now) > self._name.part):
            self._seal()

    def _create(self, now: float) -> SegmentWriter:
        if self._next is None:
            self._next = SegmentName(max(part_at(now), self._name.part), self._recorder, self._name.counter + 1)
        # One that could not be made may be there none the less: trying again must find it, and not make a second one.
        name = self._next
        header = Header(self._recorder, name.counter, now, self._prior_length, self.label, self._group)
        self._segment = segment = SegmentWriter.create(self._storage, self._folder / str(name), header)
        self._name, self._next = name, None
        if self._abandoned is not None:
            self._abandoned.close()
            self._abandoned = None
        return segment

    def _sync(self) -> None:
        if self._segment is None:
            return
        try:
            self._segment.sync()
        except OSError:
            self._abandon(self._segment)
            raise
        self._end = Position(str(self._name), self._segment.synced.length, self._segment.synced.rows)
        if self._unsynced:
            self._synced = self._unsynced[-1].number
            self._unsynced, self._unsynced_bytes = [], 0

    def _seal(self) -> None:
        if self._segment is None:
            return
        self._sync()
        try:
            self._segment.seal()
        except OSError:
            self._abandon(self._segment)
            raise
        self._prior_length = self._segment.synced.length
        self._segment = None

    def _abandon(self, segment: SegmentWriter) -> None:
        """Never again this file: what it had beyond its watermark goes to the next one."""
        segment.abandon()
        self._pending = self._unsynced + self._pending
        self._unsynced, self._unsynced_bytes = [], 0
        self._prior_length = segment.synced.length
        self._abandoned, self._segment = segment, None
