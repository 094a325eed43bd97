"""Names in a journal's folder. Owns how labels, hours and segments are spelt as paths; opens nothing.

DIR/label=<quoted label>/part=<UTC hour>/<recorder, 16 hex digits>-<counter, 8 digits>.rvqj
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

SEGMENT_SUFFIX: Final = ".rvqj"
INDEX_SUFFIX: Final = ".idx"
NEW_SUFFIX: Final = ".new"
"""Of a segment whose header is not synced yet. It holds nothing; when found without its writer it is removed."""

NAME_BYTES_MAX: Final = 255
"""What file systems take for one name."""

_LABEL: Final = "label="
_PART: Final = "part="
_HASHED: Final = "~"
"""Stands before the hash of a label whose name would be too long. In quoted labels it is quoted as well."""
_KEPT: Final = 200
_SEGMENT: Final = re.compile(r"([0-9a-f]{16})-([0-9]{8,})\.rvqj")
_PART_NAME: Final = re.compile(r"part=([0-9]{10})")


class SegmentName(NamedTuple):
    """Which segment of a label. They sort by time, and those of one recorder in the order of writing."""

    part: str
    """UTC hour, YYYYMMDDHH."""
    recorder: int
    counter: int

    def __str__(self) -> str:
        return f"{_PART}{self.part}/{self.recorder:016x}-{self.counter:08}{SEGMENT_SUFFIX}"

    @classmethod
    def parse(cls, text: str) -> SegmentName | None:
        """From what `str` gives. None for any other text."""
        folder, _, name = text.partition("/")
        part, found = _PART_NAME.fullmatch(folder), _SEGMENT.fullmatch(name)
        return cls(part[1], int(found[1], 16), int(found[2])) if part and found else None


def label_folder(label: str) -> str:
    """The name of a label's folder: quoted, or if that is too long its beginning and a hash of all of it."""
    quoted = quote(label, safe="").replace(_HASHED, "%7E")
    if len(_LABEL) + len(quoted) <= NAME_BYTES_MAX:
        return _LABEL + quoted
    digest = blake2b(label.encode(), digest_size=16, person=b"rvq journal").hexdigest()
    return _LABEL + re.sub("%.?$", "", quoted[:_KEPT]) + _HASHED + digest


def is_label_folder(name: str) -> bool:
    return name.startswith(_LABEL)


def label_of_folder(name: str) -> str | None:
    """The label, or None if its folder does not tell: then the header of any segment in it does."""
    quoted = name.removeprefix(_LABEL)
    return None if _HASHED in quoted else unquote(quoted)


def part_at(now: float) -> str:
    """The hour of this wall clock time."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y%m%d%H")


def part_end(part: str) -> float:
    """The wall clock time at which this hour is over."""
    start = datetime.strptime(part, "%Y%m%d%H").replace(tzinfo=UTC)
    return (start + timedelta(hours=1)).timestamp()


def part_folder(part: str) -> str:
    return _PART + part


def part_of_folder(name: str) -> str | None:
    found = _PART_NAME.fullmatch(name)
    return found[1] if found else None


def index_path(segment: Path) -> Path:
    return segment.with_name(segment.name + INDEX_SUFFIX)


def new_path(segment: Path) -> Path:
    return segment.with_name(segment.name + NEW_SUFFIX)
