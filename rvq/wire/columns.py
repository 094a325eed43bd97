"""The messages of a frame side by side, for those who make tables of them. Owns how records become columns.

Where records are plain, nothing is done for each of them in Python: a data pipeline takes the buffers as they are.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from operator import sub
from typing import Final, NamedTuple

from rvq.errors import WireError
from rvq.wire.batch import Batch
from rvq.wire.fragments import Whole
from rvq.wire.frames import DataFlag
from rvq.wire.records import PACKED, RAW
from rvq.wire.train import Run, Train

NO_KIND: Final = 255
"""Stands for the kind of a record that has not even a byte for it."""

FRAME_RAW, FRAME_MIXED = int(DataFlag.RAW), int(DataFlag.MIXED)
_KIND_BYTES: Final = [bytes([kind]) for kind in (RAW, PACKED)]


class Columns(NamedTuple):
    """The messages of a block side by side."""

    sequences: Sequence[int]
    data: bytes | memoryview
    """Records one behind the other, perhaps with something before the first and behind the last."""
    offsets: array[int]
    """Where in `data` each record begins, and where the last one ends: 32 bits each, as this machine has them."""
    kinds: int | bytes
    """One for all, or one for each."""
    shards: Sequence[int] | None
    """Of each, NO_SHARD for one without a key; None if none has one."""


def batches_of(run: Run) -> list[Batch]:
    """The frames of a run, but for those of a large message. Raises WireError if one is not what it says."""
    if isinstance(run, Train):
        return [batch for batch, _ in run.batches(range(run.count))]
    return [run] if isinstance(run, Batch) else []


def kind_of(flags: int) -> int | None:
    """The kind of all records of a frame or a share; None if each begins with its own."""
    return None if flags & FRAME_MIXED else RAW if flags & FRAME_RAW else PACKED


def records_of(run: Batch | Train, places: Sequence[int]) -> tuple[int, Sequence[bytes]]:
    """RAW, MIXED or neither, and the records at these places as such a frame would have them. Raises WireError."""
    if isinstance(run, Batch):
        return run.flags & (FRAME_RAW | FRAME_MIXED), run.slices(places)
    found = [(batch, batch.slices(own)) for batch, own in run.batches(places)]
    flags = {batch.flags & (FRAME_RAW | FRAME_MIXED) for batch, _ in found}
    if len(flags) == 1:
        return flags.pop(), list(chain.from_iterable(records for _, records in found))
    # The frames of one train may differ in this: then all records say their kind.
    return FRAME_MIXED, [record for batch, records in found for record in _with_kinds(batch, records)]


def _with_kinds(batch: Batch, records: Sequence[bytes]) -> Sequence[bytes]:
    kind = kind_of(batch.flags)
    return records if kind is None else [_KIND_BYTES[kind] + record for record in records]


def columns_of_run(run: Run, sequences: range) -> Columns:
    """Of all messages of a run, whose frames were checked."""
    if isinstance(run, Whole):
        return Columns(sequences, run.data, array("i", (0, len(run.data))), run.kind, run.shards)
    batches = batches_of(run)
    flags = {batch.flags & (FRAME_RAW | FRAME_MIXED) for batch in batches}
    if len(flags) > 1:
        _, records = records_of(run, range(run.count))
        return make_columns(sequences, b"".join(records), offsets_of(records), None, None)
    if isinstance(run, Batch):
        return make_columns(sequences, memoryview(run.datagram), run.offsets(), kind_of(run.flags), run.shards)
    tables = [batch.offsets() for batch in batches]
    data = b"".join([batch.datagram[table[0] : table[-1]] for batch, table in zip(batches, tables, strict=True)])
    lens = chain.from_iterable(map(sub, table[1:], table[:-1]) for table in tables)
    return make_columns(sequences, data, array("i", accumulate(lens, initial=0)), kind_of(flags.pop()), None)


def offsets_of(records: Sequence[bytes | memoryview]) -> array[int]:
    """Where records begin if they stand one behind the other, and where the last one ends."""
    return array("i", accumulate(map(len, records), initial=0))


def make_columns(
    sequences: Sequence[int],
    data: bytes | memoryview,
    offsets: array[int],
    kind: int | None,
    shards: Sequence[int] | None,
) -> Columns:
    """kind: None if each record begins with its own, which is then taken off."""
    if kind is not None:
        return Columns(sequences, data, offsets, kind, shards)
    spans = list(pairwise(offsets))
    kinds = bytes([data[start] if start < end else NO_KIND for start, end in spans])
    records = [data[start + 1 : end] for start, end in spans]
    alike = kinds.count(kinds[0]) == len(kinds)
    return Columns(sequences, b"".join(records), offsets_of(records), kinds[0] if alike else kinds, shards)


def check_run(run: Run, most: int) -> None:
    """Can all its records be told apart, and are they no more than this? Raises WireError if not."""
    if not 0 < run.count <= most:
        raise WireError(f"{run.count} messages in one frame or train")
    for batch in batches_of(run):
        batch.check()
