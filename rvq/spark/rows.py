"""Messages -> record batches with the columns that are asked for. Hot: what nobody asks for is not built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rvq.journal import Block, JournalReader
from rvq.limits import MIB
from rvq.spark.blocks import Array, Frames, Messages, read_messages
from rvq.spark.chains import Slice
from rvq.spark.offsets import order
from rvq.spark.options import ReadOptions
from rvq.spark.values import Values
from rvq.wire.records import NO_SHARD

ROWS_LEAST: Final = 4_096
ROWS_MOST: Final = 16_384
"""Of a batch: smaller ones cost more for each row, larger ones leave the processor's cache. A full block of messages of
200 bytes is one, and so need not be copied to lie beside another."""
BYTES_MOST: Final = 8 * MIB
"""Blocks are decoded together until they have this, however few their messages."""

SEGMENT_BITS: Final = 40
"""`offset` is the segment's counter above this many bits, and the row of the segment below: it rises within a chain."""

CREATE_TIME: Final = 0
"""`timestampType` of Kafka's times that a sender has set."""


def groups_of(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Blocks that are decoded together: as many as make a good batch."""
    group: list[Block] = []
    rows = size = 0
    for block in blocks:
        group.append(block)
        rows += block.header.rows
        size += block.header.length
        if rows >= ROWS_LEAST or size >= BYTES_MOST:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


def read_rows(reader: JournalReader, options: ReadOptions, one: Slice, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The messages of a slice."""
    facts = Facts(one, reader.group)
    for group in groups_of(reader.blocks(one.label, one.start, one.end)):
        if any(block.header.rows for block in group):
            messages = within(read_messages(group), options)
            batch = batch_of(messages, schema, facts)
            for start in range(0, batch.num_rows, ROWS_MOST):
                yield batch.slice(start, ROWS_MOST)


def within(messages: Messages, options: ReadOptions) -> Messages:
    """Those that were heard in the time that is asked for."""
    heard = messages.heard_at
    wanted = (heard >= options.starting_at) & (heard < options.ending_at)
    if wanted.all():
        return messages
    return _taken(messages, wanted)


def _taken(messages: Messages, frames: Array) -> Messages:
    """The messages of some of the frames."""
    rows = frames[messages.frame]
    renumbered = np.cumsum(frames) - 1
    m = messages
    return Messages(
        data=m.data,
        frames=Frames(*(getattr(m.frames, name)[frames] for name in Frames.__dataclass_fields__)),
        frame=renumbered[m.frame[rows]],
        sequence=m.sequence[rows],
        start=m.start[rows],
        end=m.end[rows],
        kind=m.kind[rows],
        shard=None if m.shard is None else m.shard[rows],
        ordinal=m.ordinal[rows],
        block=m.block[rows],
        heard_at=m.heard_at[frames],
    )


class Facts:
    """What all messages of a slice have in common."""

    def __init__(self, one: Slice, group: str) -> None:
        self.label = one.label
        self.group = group
        self.recorder = int(one.recorder, 16)
        self.base = order(one.start)[0] << SEGMENT_BITS

    @property
    def partition(self) -> int:
        """A number of 31 bits for a chain, as Kafka's readers expect one."""
        return self.recorder & 0x7FFF_FFFF


def batch_of(messages: Messages, schema: pa.Schema, facts: Facts) -> pa.RecordBatch:
    values = Values(messages) if {"key", "value", "headers", "type"} & set(schema.names) else None
    columns = [_COLUMNS[name](messages, values, facts) for name in schema.names]
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(messages), pa.struct([])))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def as_times(seconds: Array) -> pa.Array:
    """Seconds since 1970 as Spark's timestamps."""
    return pa.array((seconds * 1e6).round().astype(np.int64)).cast(pa.timestamp("us", tz="UTC"))


def _shards(messages: Messages) -> pa.Array:
    if messages.shard is None:
        return pa.nulls(len(messages), pa.int32())
    return pa.array(messages.shard.astype(np.int32), mask=messages.shard == NO_SHARD)


_Column = Callable[[Messages, Any, Facts], pa.Array]

_COLUMNS: Final[dict[str, _Column]] = {
    "key": lambda m, values, facts: values.keys(),
    "value": lambda m, values, facts: values.bodies(),
    "headers": lambda m, values, facts: values.headers(),
    "type": lambda m, values, facts: values.types(),
    "topic": lambda m, values, facts: pa.repeat(facts.label, len(m)),
    "partition": lambda m, values, facts: pa.repeat(pa.scalar(facts.partition, pa.int32()), len(m)),
    "offset": lambda m, values, facts: pa.array(m.ordinal + facts.base),
    "timestamp": lambda m, values, facts: as_times(m.frames.sent_at).take(pa.array(m.frame)),
    "timestampType": lambda m, values, facts: pa.repeat(pa.scalar(CREATE_TIME, pa.int32()), len(m)),
    "sender": lambda m, values, facts: pa.array(m.frames.stream[m.frame]),
    "sequence": lambda m, values, facts: pa.array(m.sequence),
    "kind": lambda m, values, facts: pa.repeat("data", len(m)),
    "group": lambda m, values, facts: pa.repeat(facts.group, len(m)),
    "receiver": lambda m, values, facts: pa.repeat(pa.scalar(facts.recorder, pa.int64()), len(m)),
    "shard": lambda m, values, facts: _shards(m),
    "heard": lambda m, values, facts: as_times(m.heard_at).take(pa.array(m.frame)),
}
