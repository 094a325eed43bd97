"""Dropping what is old. Owns which parts may go, and deleting them: files first, then folders that became empty."""

from __future__ import annotations

from pathlib import Path

from rvq.errors import JournalDamaged, JournalError
from rvq.journal.folders import Folders
from rvq.journal.layout import State
from rvq.journal.marker import read_marker
from rvq.journal.places import SegmentName, part_end, part_folder
from rvq.journal.storage import OsStorage, Storage


def expire(root: str | Path, before: float, *, storage: Storage | None = None) -> list[Path]:
    """Deletes the parts whose hour was over by `before` (wall clock seconds) and that no recorder has. Which they were.

    A part goes as a whole or not at all. JournalError if the disk refuses; another call goes on from there.
    """
    folders = Folders(storage or OsStorage(), Path(root))
    read_marker(folders.storage, folders.root)
    gone = []
    try:
        for folder in folders.label_folders():
            for part in folders.parts_in(folder):
                if part_end(part) <= before and not _is_in_use(folders, folder, part):
                    _remove_part(folders, folder, part)
                    gone.append(folders.root / folder / part_folder(part))
            _remove_if_empty(folders, folders.root / folder)
    except OSError as error:
        words = f"cannot be expired ({error.strerror or error}): check the rights to it and its disk"
        raise JournalError(error.filename or root, words) from error
    return gone


def _is_in_use(folders: Folders, folder: str, part: str) -> bool:
    return any(_has_writer(folders, folder, name) for name in folders.segments_of(folder, part))


def _has_writer(folders: Folders, folder: str, name: SegmentName) -> bool:
    """Whether a recorder has it open. A damaged segment is nobody's: it goes with its part."""
    try:
        segment = folders.open(folder, name)
        segment.file.close()
        if segment.head.watermark.state is State.SEALED:
            return False
        file = folders.storage.open(folders.path(folder, name), write=True)
    except FileNotFoundError:
        return False
    except JournalDamaged:
        return False
    try:
        return not file.lock()
    finally:
        file.close()


def _remove_part(folders: Folders, folder: str, part: str) -> None:
    """In the order of writing: if this is broken off, what is left is the end of each chain and has no gap."""
    path = folders.root / folder / part_folder(part)
    storage = folders.storage
    for name in sorted(folders.segments_of(folder, part), key=lambda name: (name.recorder, name.counter)):
        storage.remove(folders.path(folder, name))
    for leftover in folders.leftovers_of(folder, part):
        storage.remove(path / leftover)
    _remove_if_empty(folders, path)


def _remove_if_empty(folders: Folders, path: Path) -> None:
    if not folders.storage.list(path):
        try:
            folders.storage.remove_folder(path)
        except OSError:
            return  # a recorder made something in it just now
        folders.storage.sync_folder(path.parent)
