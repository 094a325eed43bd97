"""What a recorder stores in an entry of a journal, as Spark's reader needs it. The one place where the two meet.

Entry kinds and flags in; what each payload is, and large messages put together, out.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from rvq.errors import JournalDamaged, WireError
from rvq.wire.records import NO_SHARD
from rvq.wire.stored import StoredKind, read_stored

FRAME, TRAIN, FRAGMENTS, SHARE = (int(kind) for kind in StoredKind)
NONE: Final = 0

Array = np.ndarray[Any, np.dtype[Any]]


class Large(NamedTuple):
    """A message that came in fragments."""

    stream: int
    stamp: int
    sequence: int
    sent_at: float
    kind: int
    shard: int
    data: bytes


def stored_kinds(kinds: Array) -> Array:
    """For each entry what its payload is; NONE for those without messages, and for those of a later version."""
    return np.where((kinds >= FRAME) & (kinds <= SHARE), kinds, NONE)


def read_whole(payload: bytes) -> Large:
    """A message from all its fragments."""
    try:
        frame = read_stored(FRAGMENTS, 0, payload)
        _, data, _, kinds, shards = frame.columns()
    except WireError as error:
        raise JournalDamaged("a large message", 0, f"its fragments cannot be read ({error})") from error
    kind = kinds if isinstance(kinds, int) else kinds[0]
    shard = NO_SHARD if shards is None else shards[0]
    return Large(frame.stream, frame.stamp, frame.first, frame.sent_at, kind, shard, bytes(data))
