"""Each message is one row, with what is known of it, in batches of a good size."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from rvq.journal import JournalReader
from rvq.spark.chains import Chains
from rvq.spark.columns import MESSAGE_COLUMNS, arrow_schema
from rvq.spark.options import read_options
from rvq.spark.rows import ROWS_MOST, SEGMENT_BITS, read_rows
from rvq.wire.records import Records, make_record, shard_of
from tests.spark.writing import NOW, STREAM, entry_of, frame, write, write_bodies

ALL = StructType([StructField(name, kind) for name, kind in MESSAGE_COLUMNS.items()])


def batches_of(folder: Path, schema: StructType = ALL, **more: str) -> list[pa.RecordBatch]:
    options = read_options({"path": str(folder)} | more, streaming=False)
    reader = JournalReader(folder)
    chains = Chains(reader, fail_on_data_loss=True)
    found: list[pa.RecordBatch] = []
    for recorder, end in reader.tail("work").items():
        for one in chains.slices(("work", recorder), None, end):
            found += read_rows(reader, options, one, arrow_schema(schema))
    return found


def rows_of(folder: Path, **more: str) -> list[dict[str, Any]]:
    return [row for batch in batches_of(folder, **more) for row in batch.to_pylist()]


def test_everything_that_is_known_of_a_message_is_in_its_row(tmp_path: Path) -> None:
    records = Records.of([make_record({"n": 1}, key="user-7", headers={"trace": "a1"}), make_record(b"raw")])
    write(tmp_path, [[entry_of(frame(records, 41, sent_at=NOW - 0.25), NOW)]], recorder=(5 << 32) + 9)
    sent = datetime.fromtimestamp(NOW - 0.25, UTC)
    first, second = rows_of(tmp_path)
    assert first == {
        "key": b"user-7",
        "value": b'{"n":1}',
        "topic": "work",
        "partition": 9,
        "offset": 1 << SEGMENT_BITS,
        "timestamp": sent,
        "timestampType": 0,
        "headers": [{"key": "trace", "value": b"a1"}],
        "sender": STREAM,
        "sequence": 41,
        "kind": "data",
        "group": "journal",
        "receiver": (5 << 32) + 9,
        "shard": shard_of("user-7"),
        "heard": datetime.fromtimestamp(NOW, UTC),
        "type": "json",
    }
    assert second == first | {
        "key": None,
        "value": b"raw",
        "offset": first["offset"] + 1,
        "headers": None,
        "sequence": 42,
        "shard": None,
        "type": "bytes",
    }


def test_offsets_rise_and_no_two_are_alike(tmp_path: Path) -> None:
    write_bodies(tmp_path, [b"x" * 100] * 3000, segment_bytes=100_000)
    offsets = [row["offset"] for row in rows_of(tmp_path)]
    assert len(offsets) == 3000
    assert offsets == sorted(set(offsets))


def test_batches_are_neither_tiny_nor_huge(tmp_path: Path) -> None:
    write_bodies(tmp_path, [b"x"] * 60_000, per_frame=1000, per_commit=1)
    sizes = [batch.num_rows for batch in batches_of(tmp_path)]
    assert sum(sizes) == 60_000
    assert max(sizes) <= ROWS_MOST
    assert min(sizes[:-1]) >= ROWS_MOST // 4


def test_only_what_was_heard_in_time(tmp_path: Path) -> None:
    entries = [[entry_of(frame(Records.of([make_record(n)]), n + 1), NOW + n)] for n in range(10)]
    write(tmp_path, entries)
    within = {"startingTimestamp": f"{int(NOW + 3)}000", "endingTimestamp": f"{int(NOW + 7)}000"}
    assert [row["value"] for row in rows_of(tmp_path, **within)] == [b"3", b"4", b"5", b"6"]


def test_a_query_may_ask_for_no_column_at_all(tmp_path: Path) -> None:
    write_bodies(tmp_path, [b"x"] * 10)
    assert sum(batch.num_rows for batch in batches_of(tmp_path, StructType([]))) == 10
