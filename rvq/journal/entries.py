"""What a journal is made of: entries. Owns their fields and bounds; what is in a payload is its writer's affair."""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from rvq.limits import JOURNAL_ENTRY_BYTES_MAX

ROWS_MAX: Final = 2**32 - 1
"""Messages in one entry: what its column holds."""

Source = tuple[str, int]
Payload = bytes | bytearray | memoryview


class EntryKind(IntEnum):
    """What an entry is. Readers skip kinds that they do not know."""

    FRAME = 1
    """A data datagram as it came."""
    SHARE = 2
    """The own part of a frame, where several recorders share the load."""
    CONTROL = 3
    """A control datagram as it came."""
    NOTE = 4
    """What the journal says of itself."""


class Entry(NamedTuple):
    """One thing that was heard, and when. Hot: one for each frame, so a tuple."""

    kind: int
    flags: int
    source: Source | None
    """IPv4 address and port. Anything else is stored as None."""
    heard_at: float
    """Wall clock seconds."""
    rows: int
    """Messages in it. 0 for control."""
    payload: Payload
    """Must not change until it is committed."""


def check_entry(entry: Entry) -> int:
    """The bytes of its payload. ValueError if it does not fit the format: that must not come out only at the disk."""
    kind, flags, _, heard_at, rows, payload = entry
    size = len(payload)
    if size > JOURNAL_ENTRY_BYTES_MAX or not 0 <= rows <= ROWS_MAX or (kind | flags) & -256:
        raise ValueError(
            f"an entry of kind {kind}, flags {flags}, {rows} rows and {size} bytes does not fit the journal"
        )
    if not -1e300 < heard_at < 1e300:
        raise ValueError(f"an entry cannot have been heard at {heard_at}")
    return size


@lru_cache(maxsize=4096)
def pack_source(source: Source | None) -> tuple[int, int]:
    """Address and port as numbers; zeros for what is not IPv4."""
    if source is None:
        return 0, 0
    address, port = source[0].split("."), source[1]
    if len(address) != 4 or not all(part.isdecimal() and len(part) < 4 and int(part) < 256 for part in address):
        return 0, 0
    if not 0 < port < 65_536:
        return 0, 0
    return int.from_bytes(bytes(map(int, address)), "big"), port


@lru_cache(maxsize=4096)
def read_source(address: int, port: int) -> Source | None:
    """The other way round."""
    return (".".join(map(str, address.to_bytes(4, "big"))), port) if port else None
