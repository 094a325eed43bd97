"""What a recorder stores in an entry of a journal, as Spark's reader needs it. The one place where the two meet.

Entry kinds and flags in; what each payload is, and large messages put together, out.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from struct import Struct
from struct import error as StructError
from typing import Any, Final, NamedTuple

import numpy as np

from rvq.errors import JournalDamaged, WireError
from rvq.journal import EntryKind
from rvq.wire.codec import read_data_header
from rvq.wire.fragments import read_fragment
from rvq.wire.records import NO_SHARD

NONE, FRAME, TRAIN, FRAGMENTS, SHARE = range(5)
"""What a payload is: nothing of use here, a data frame, its size and a train, fragments, a recorder's own part."""

Array = np.ndarray[Any, np.dtype[Any]]
_COUNT: Final = Struct(">I")


class Large(NamedTuple):
    """A message that came in fragments."""

    stream: int
    stamp: int
    sequence: int
    sent_at: float
    kind: int
    shard: int
    data: bytes


def stored_kinds(kinds: Array, flags: Array) -> Array:
    """For each entry what its payload is; NONE for those without messages."""
    found = np.where(kinds == EntryKind.FRAME, np.where(flags == 0, FRAME, flags), NONE)
    return np.where(kinds == EntryKind.SHARE, SHARE, found)


def read_whole(payload: bytes) -> Large:
    """A message from all its fragments: how many there are, the size of each, and all of them."""
    try:
        (count,) = _COUNT.unpack_from(payload)
        begin = _COUNT.size + 2 * count
        sizes = np.frombuffer(payload, ">u2", count, _COUNT.size).tolist()
        places = pairwise(accumulate(sizes, initial=begin))
        parts = [read_fragment(part, read_data_header(part)) for part in (payload[a:b] for a, b in places)]
        stream = read_data_header(parts[0].datagram).stream
    except (StructError, WireError, ValueError, IndexError) as error:
        raise JournalDamaged("a large message", 0, f"its fragments cannot be read ({error})") from error
    first = parts[0]
    shard = first.shard if first.shard is not None else NO_SHARD
    data = b"".join([part.data for part in parts])
    return Large(stream, first.stamp, first.first, first.sent_at, first.kind, shard, data)
