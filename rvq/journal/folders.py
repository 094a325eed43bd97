"""What segments a journal's folder has. Owns the listing, in order, and opening one for reading; never writes."""

from __future__ import annotations

from pathlib import Path

from rvq.errors import JournalDamaged, JournalError
from rvq.journal.places import (
    SegmentName,
    is_label_folder,
    label_folder,
    label_of_folder,
    part_folder,
    part_of_folder,
)
from rvq.journal.scan import Segment, read_head
from rvq.journal.storage import Storage


class Folders:
    """A journal's folder, looked at anew at each call: recorders add to it, and expiry takes away."""

    def __init__(self, storage: Storage, root: Path) -> None:
        self.storage = storage
        self.root = root

    def label_folders(self) -> list[str]:
        return [name for name in self._names(self.root) if is_label_folder(name)]

    def labels(self) -> list[str]:
        """All labels that have a segment, sorted. A folder whose name had to be cut tells its label in a segment."""
        labels = []
        for folder in self.label_folders():
            names = self.segments_in(folder)
            if names:
                label = label_of_folder(folder)
                labels.append(self._label_inside(folder, names) if label is None else label)
        return sorted(labels)

    def parts_in(self, folder: str) -> list[str]:
        """The hours of a label's folder, in order."""
        return [part for name in self._names(self.root / folder) if (part := part_of_folder(name)) is not None]

    def segments_in(self, folder: str) -> list[SegmentName]:
        """All segments of a label's folder, by hour, recorder and counter."""
        return sorted(name for part in self.parts_in(folder) for name in self.segments_of(folder, part))

    def segments_of(self, folder: str, part: str) -> list[SegmentName]:
        """The segments of one hour."""
        inside = part_folder(part)
        names = (SegmentName.parse(f"{inside}/{name}") for name in self._names(self.root / folder / inside))
        return [name for name in names if name is not None]

    def leftovers_of(self, folder: str, part: str) -> list[str]:
        """Files of one hour that are not segments."""
        inside = part_folder(part)
        names = self._names(self.root / folder / inside)
        return [name for name in names if SegmentName.parse(f"{inside}/{name}") is None]

    def chain(self, label: str, recorder: int) -> list[SegmentName]:
        """The segments of one recorder, in the order in which they were written."""
        names = self.segments_in(label_folder(label))
        return sorted((name for name in names if name.recorder == recorder), key=lambda name: name.counter)

    def path(self, folder: str, name: SegmentName) -> Path:
        return self.root / folder / str(name)

    def open(self, folder: str, name: SegmentName) -> Segment:
        """A segment for reading. The caller closes `.file`. JournalDamaged if it is not the segment of this name."""
        path = self.path(folder, name)
        file = self.storage.open(path)
        try:
            head = read_head(file, path)
            check_name(folder, name, path, head.header.label, (head.header.recorder, head.header.counter))
        except BaseException:
            file.close()
            raise
        return Segment(file, path, name, head)

    def _label_inside(self, folder: str, names: list[SegmentName]) -> str:
        for name in names:
            try:
                segment = self.open(folder, name)
            except (OSError, JournalDamaged):
                continue
            segment.file.close()
            return segment.head.header.label
        raise JournalError(self.root / folder, "no segment in here tells its label: see `rvq journal verify`")

    def _names(self, path: Path) -> list[str]:
        return self.storage.list(path) or []


def check_name(folder: str, name: SegmentName, path: Path, label: str, writer: tuple[int, int]) -> None:
    """A segment must be where its header says: one that was moved or renamed would tell another label's story."""
    if writer != (name.recorder, name.counter) or label_folder(label) != folder:
        said = f"{label_folder(label)}, {writer[0]:016x}-{writer[1]:08}"
        raise JournalDamaged(path, 0, f"its header says that it is {said}: it was moved or renamed")
