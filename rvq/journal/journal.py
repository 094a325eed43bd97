"""A journal that is being written: one folder, a writer for each label. Owns opening, and committing all at once."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from rvq.errors import JournalError
from rvq.journal.marker import make_marker
from rvq.journal.recovery import Recovery, recover
from rvq.journal.storage import OsStorage, Storage
from rvq.journal.writer import SEGMENT_BYTES, Batch, Position, Writer
from rvq.names import check_group, check_label

Prepared = list[tuple[Writer, Batch]]
"""Batches of several labels, taken at one time."""


class Journal:
    """The writing end of a journal. Several recorders may have one folder open: each writes segments of its own."""

    def __init__(self, root: Path, group: str, recorder: int, storage: Storage, segment_bytes: int) -> None:
        """`open` is the way in."""
        self.root = root
        self.group = group
        self.recorder = recorder
        self.recovery = Recovery([], [])
        """What was done at opening about segments that others left open."""
        self._storage = storage
        self._segment_bytes = segment_bytes
        self._writers: dict[str, Writer] = {}

    @classmethod
    def open(
        cls,
        root: str | Path,
        *,
        group: str,
        recorder: int,
        storage: Storage | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        leave_damaged: bool = False,
    ) -> Journal:
        """Makes the folder a journal, or checks that it is one of this group; recovers what the dead left open.

        `recorder` is a fresh random id below 2^63: never one that has written here before. JournalDamaged if a segment
        is damaged where it was synced, after all others are recovered; with `leave_damaged` it is left as it is and
        named in `recovery`.
        """
        if not 0 <= recorder < 2**63:
            raise ValueError(f"recorder {recorder} is not an id of 63 bits")
        journal = cls(Path(root), check_group(group), recorder, storage or OsStorage(), segment_bytes)
        try:
            make_marker(journal._storage, journal.root, group, recorder)
        except OSError as error:
            words = f"cannot be made a journal ({error.strerror or error}): check the path, its rights and its disk"
            raise JournalError(error.filename or root, words) from error
        journal.recovery = recover(journal._storage, journal.root)
        if journal.recovery.damaged and not leave_damaged:
            raise journal.recovery.damaged[0]
        return journal

    def writer(self, label: str) -> Writer:
        """The writer of a label; the same one each time."""
        writer = self._writers.get(label)
        if writer is None:
            writer = Writer(
                self._storage, self.root, check_label(label), self.group, self.recorder, self._segment_bytes
            )
            self._writers[label] = writer
        return writer

    def prepare(self) -> Prepared:
        """Takes what was added to all labels. In the thread that adds; `commit` may then run in another."""
        return [(writer, writer.prepare()) for writer in self._writers.values()]

    def commit(self, now: float, prepared: Prepared | None = None, *, sync: bool = True) -> dict[str, Position | None]:
        """Commits these batches, by default all that was added. If labels fail, the others are committed none the less,
        and the first error is raised."""
        ends, errors = {}, []
        for writer, batch in self.prepare() if prepared is None else prepared:
            try:
                ends[writer.label] = writer.commit(now, batch, sync=sync)
            except JournalError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return ends

    def close(self, now: float) -> None:
        """Commits and seals everything. If that fails, what could be sealed is, and the first error is raised."""
        errors = []
        for writer in self._writers.values():
            try:
                writer.close(now)
            except JournalError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def abort(self) -> None:
        """Lets go of all files as they are."""
        for writer in self._writers.values():
            writer.abort()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets go: sealing needs the time, so that is `close`'s."""
        self.abort()
