"""Entries -> the history as rows: who said what, one row for each frame of messages and each word of control.

Owns how control frames look as rows. Messages stay together as they were sent, so a journal of a billion messages has
some ten million rows here; jobs that look at each message do so in arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rvq.errors import WireError
from rvq.journal import Block, EntryKind, JournalReader
from rvq.spark.blocks import Messages, read_messages
from rvq.spark.chains import Slice
from rvq.spark.options import HISTORY, ReadOptions
from rvq.spark.plain import as_json
from rvq.spark.rows import Facts, as_times, groups_of, within
from rvq.wire.codec import decode_control
from rvq.wire.frames import Alive, Control, Goodbye, Handled, Outcome, SenderAlive, SenderGoodbye, Stamp, TableFrame

Row = dict[str, Any]

DATA: Final = "data"
HANDLED: Final = "handled"
STAMP: Final = "stamp"
TABLE: Final = "table"
HELLO: Final = "hello"
ALIVE: Final = "alive"
GOODBYE: Final = "goodbye"


def read_history(
    reader: JournalReader, options: ReadOptions, one: Slice, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The history of a slice."""
    facts = Facts(one, reader.group)
    for group in groups_of(reader.blocks(one.label, one.start, one.end)):
        if options.rows == HISTORY and any(block.header.rows for block in group):
            yield _data(within(read_messages(group), options), schema, facts)
        rows = [row for block in group for row in _said(block, options, facts)]
        if rows:
            yield pa.RecordBatch.from_pylist([_timed(row) for row in rows], schema=schema)


def _timed(row: Row) -> Row:
    return row | {name: round(row[name] * 1e6) for name in ("timestamp", "heard")}


def _data(messages: Messages, schema: pa.Schema, facts: Facts) -> pa.RecordBatch:
    frames = messages.frames
    count = len(frames.count)
    ends = np.cumsum(frames.count)
    starts = ends - frames.count
    columns: dict[str, pa.Array] = {
        "kind": pa.repeat(DATA, count),
        "topic": pa.repeat(facts.label, count),
        "group": pa.repeat(facts.group, count),
        "recorder": pa.repeat(pa.scalar(facts.recorder, pa.int64()), count),
        "sender": pa.array(frames.stream),
        "timestamp": as_times(frames.sent_at),
        "heard": as_times(messages.heard_at),
        "first": pa.array(messages.sequence[starts] if count else frames.first),
        "last": pa.array(messages.sequence[ends - 1] if count else frames.first),
        "step": pa.array(frames.step.astype(np.int32)),
        "count": pa.array(frames.count.astype(np.int32)),
        "stamp": pa.array(frames.stamp),
    }
    if "sequences" in schema.names and (frames.step == 0).any():
        columns["sequences"] = _parts(messages.sequence.astype("<i8"), starts, ends, frames.step == 0)
    if "shards" in schema.names and messages.shard is not None:
        columns["shards"] = _parts(messages.shard.astype("<u2"), starts, ends, frames.count > 0)
    return pa.RecordBatch.from_arrays(
        [columns.get(field.name, pa.nulls(count, field.type)) for field in schema], schema=schema
    )


def _parts(values: Any, starts: Any, ends: Any, wanted: Any) -> pa.Array:
    return pa.array(
        [values[start:end].tobytes() if want else None for start, end, want in zip(starts, ends, wanted, strict=True)],
        pa.binary(),
    )


def _said(block: Block, options: ReadOptions, facts: Facts) -> Iterator[Row]:
    if EntryKind.CONTROL not in block.columns.kind:
        return
    columns = block.columns
    for kind, heard, payload in zip(columns.kind, columns.heard_at, block.payloads(), strict=True):
        if kind != EntryKind.CONTROL or not options.starting_at <= heard < options.ending_at:
            continue
        try:
            frame = decode_control(bytes(payload))
        except WireError:
            continue  # of a later version: its words mean nothing here
        about = {"topic": facts.label, "recorder": facts.recorder, "heard": heard, "timestamp": heard}
        for row in rows_of(frame):
            yield about | row


def rows_of(frame: Control) -> list[Row]:
    """A word of control as rows; none for those that are not history."""
    match frame:
        case SenderAlive():
            groups = [{"group": s.group, "done_to": s.done_to, "held": s.held} for s in frame.groups]
            return [
                {
                    "kind": HELLO if frame.hello else ALIVE,
                    "sender": frame.source,
                    "last": frame.last,
                    "stamp": frame.newest_stamp,
                    "detail": as_json(groups),
                }
            ]
        case SenderGoodbye():
            return [{"kind": GOODBYE, "sender": frame.source}]
        case Stamp():
            groups = [_group(entry) for entry in frame.groups]
            said = {"kind": STAMP, "sender": frame.source, "stamp": frame.number, "first": frame.at}
            return [said | {"detail": as_json({"keyed": frame.keyed, "groups": groups})}]
        case Alive():
            said = {"kind": HELLO if frame.hello else ALIVE, "receiver": frame.source, "group": frame.group}
            return [said | {"count": frame.weight}]
        case Goodbye():
            return [{"kind": GOODBYE, "receiver": frame.source, "group": frame.group}]
        case TableFrame():
            table = {
                "version": frame.version,
                "members": frame.members,
                "draining": frame.draining,
                "shard_map": frame.shard_map,
            }
            said = {"kind": TABLE, "receiver": frame.source, "group": frame.group}
            return [said | {"counter": frame.version.counter, "detail": as_json(table)}]
        case Handled():
            return _handled(frame)
    return []


def _group(entry: Any) -> dict[str, Any]:
    names = ("group", "since", "at", "version", "members", "draining", "silent", "gone", "shard_map", "moved")
    return {name: getattr(entry, name) for name in names}


def _handled(frame: Handled) -> list[Row]:
    """What a receiver says that it did: a row for each run."""
    common = {
        "kind": HANDLED,
        "group": frame.group,
        "sender": frame.stream,
        "receiver": frame.source,
        "counter": frame.counter,
    }
    names = ("stamp", "slot", "first", "last")
    return [
        common
        | {name: getattr(run, name) for name in names}
        | {"outcome": Outcome(run.outcome).name.lower(), "timestamp": run.at}
        for run in frame.runs
    ]
