"""The file that makes a folder a journal: `journal.json`. Owns its fields, and the words for folders that are none."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from rvq.errors import BadLabel, JournalDamaged, JournalError
from rvq.journal.layout import FORMAT
from rvq.journal.scan import newer
from rvq.journal.storage import Storage
from rvq.limits import KIB
from rvq.names import check_group

MARKER: Final = "journal.json"
_SIZE_MAX: Final = 64 * KIB


class Marker(NamedTuple):
    """What is said of the journal as a whole."""

    version: int
    group: str


def read_marker(storage: Storage, folder: Path) -> Marker:
    """JournalError if there is no such folder, if it is no journal, or one of a newer format."""
    names = storage.list(folder)
    if names is None:
        raise JournalError(folder, "no such folder: give the folder of a journal, or make one with `rvq record`")
    if MARKER not in names:
        raise JournalError(
            folder, f"not a journal, since it has no {MARKER}: give the folder that `rvq record` wrote to"
        )
    return _parse(storage, folder / MARKER)


def make_marker(storage: Storage, folder: Path, group: str, recorder: int) -> None:
    """Makes the folder a journal of this group; JournalError if it is one of another group or a newer format."""
    storage.make_folder(folder)
    if MARKER not in (storage.list(folder) or ()):
        text = json.dumps({"format": "rvq journal", "version": FORMAT, "group": group}, indent=2) + "\n"
        new = folder / f"{MARKER}.{recorder:016x}.new"  # two recorders may start at once
        file = storage.create(new)
        try:
            file.write(0, text.encode())
            file.sync()
        finally:
            file.close()
        storage.rename(new, folder / MARKER)
    storage.sync_folder(folder)
    for above in folder.parents:  # any of them may be new, from now or from a start that died
        with suppress(PermissionError):  # what we may not even read, we did not make
            storage.sync_folder(above)
    found = read_marker(storage, folder).group
    if found != group:
        raise JournalError(
            folder, f"a journal of the group {found}, not {group}: use --group {found}, or another folder"
        )


def _parse(storage: Storage, path: Path) -> Marker:
    file = storage.open(path)
    try:
        data = file.read(0, _SIZE_MAX)
    finally:
        file.close()
    try:
        fields = json.loads(data)
        if fields["format"] != "rvq journal":
            raise KeyError("format")
        version = int(fields["version"])
        if version > FORMAT:
            raise newer(path, version)
        return Marker(version, check_group(fields["group"]))
    except (ValueError, KeyError, TypeError, RecursionError, BadLabel) as error:
        raise JournalDamaged(path, 0, f"not the marker of a journal ({error})") from error
