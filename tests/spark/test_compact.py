"""A journal becomes Parquet that anything reads, at once or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

from rvq.errors import SparkError
from rvq.spark.compact import compact
from rvq.wire.records import Records, make_record, shard_of
from tests.spark.writing import NOW, entry_of, frame, write, write_bodies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_it_is_laid_out_by_label_date_and_shard_and_read_without_spark(spark: SparkSession, tmp_path: Path) -> None:
    keyed = Records.of([make_record(f"b{n}", key=f"k{n}") for n in range(200)])
    journal = write(tmp_path / "journal", [[entry_of(frame(keyed, 1, sent_at=NOW - n * 86_400))] for n in range(1)])
    write_bodies(journal, [b"plain"] * 50, label="other", recorder=2)
    assert compact(spark, str(journal), str(tmp_path / "out"), ranges=4) == 250
    folders = {str(path.parent.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.parquet")}
    ranges = [f"label=work/date=2026-09-21/shards={low:04}-{low + 255:04}" for low in range(0, 1024, 256)]
    assert folders == {*ranges, "label=other/date=2026-09-21/shards=none"}
    dataset = ds.dataset(str(tmp_path / "out"), partitioning="hive", exclude_invalid_files=True)
    table = dataset.to_table().to_pylist()
    assert {row["value"] for row in table if row["label"] == "work"} == {f"b{n}".encode() for n in range(200)}
    assert all(row["shard"] == shard_of(row["key"]) for row in table if row["key"])
    codecs = {fragment.metadata.row_group(0).column(0).compression for fragment in dataset.get_fragments()}
    assert codecs == {"ZSTD"}


def test_what_two_recorders_stored_is_in_it_once(spark: SparkSession, tmp_path: Path) -> None:
    for recorder in (1, 2):
        write_bodies(tmp_path / "journal", [b"x"] * 100, recorder=recorder)
    assert compact(spark, str(tmp_path / "journal"), str(tmp_path / "out")) == 100


def test_nothing_is_overwritten_and_nothing_half_made_is_left(spark: SparkSession, tmp_path: Path) -> None:
    journal = write_bodies(tmp_path / "journal", [b"x"] * 100)
    (tmp_path / "out").mkdir()
    with pytest.raises(SparkError, match="is there already"):
        compact(spark, str(journal), str(tmp_path / "out"))
    segment = next(journal.rglob("*.rvqj"))
    data = bytearray(segment.read_bytes())
    data[4200] ^= 1
    segment.write_bytes(data)
    with pytest.raises(Exception, match="damaged at byte"):
        compact(spark, str(journal), str(tmp_path / "new"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "out"]
