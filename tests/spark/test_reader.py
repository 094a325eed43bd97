"""Streams: offsets, limits, tasks, and what is lost; as Spark asks for them, but without Spark."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from rvq.errors import SparkError
from rvq.spark.columns import arrow_schema, default_schema
from rvq.spark.options import read_options
from rvq.spark.reader import BatchReader, StreamReader
from tests.spark.writing import write_bodies

BODIES = [b"%0100d" % n for n in range(2000)]


def stream(folder: Path, **more: str) -> StreamReader:
    options = read_options({"path": str(folder), "startingOffsets": "earliest"} | more, streaming=True)
    return StreamReader(options, arrow_schema(default_schema(options)))


def values_of(reader: StreamReader | BatchReader, tasks: Any) -> list[bytes]:
    return [value for task in tasks for batch in reader.read(task) for value in batch.column("value").to_pylist()]


def follow(reader: StreamReader, start: dict[str, Any] | None = None) -> tuple[list[list[bytes]], dict[str, Any]]:
    """The batches until there is nothing new, and the offset then."""
    at = reader.initialOffset() if start is None else start
    batches = []
    while (end := reader.latestOffset(at, reader.getDefaultReadLimit())) != at:
        batches.append(values_of(reader, reader.partitions(at, end)))
        at = end
    return batches, at


def test_a_stream_has_everything_once_in_portions(tmp_path: Path) -> None:
    write_bodies(tmp_path, BODIES, per_frame=50, per_commit=1)
    batches, _ = follow(stream(tmp_path, maxOffsetsPerTrigger="300"))
    assert batches[0] == [], "the first offset is where it starts"
    assert [len(batch) for batch in batches[1:]] == [300] * 6 + [200]
    assert list(chain.from_iterable(batches)) == BODIES


def test_what_comes_later_and_from_new_recorders_is_read_on(tmp_path: Path) -> None:
    write_bodies(tmp_path, BODIES[:500], recorder=1)
    reader = stream(tmp_path)
    _, at = follow(reader)
    write_bodies(tmp_path, BODIES[500:], recorder=2)
    batches, end = follow(reader, at)
    assert batches == [BODIES[500:]]
    assert follow(reader, end) == ([], end)


def test_latest_begins_behind_what_is_there(tmp_path: Path) -> None:
    write_bodies(tmp_path, BODIES[:500], recorder=1)
    reader = stream(tmp_path, startingOffsets="latest")
    batches, at = follow(reader)
    assert batches == [[]]
    write_bodies(tmp_path, BODIES[500:], recorder=2)
    assert follow(reader, at)[0] == [BODIES[500:]]


def test_the_first_offset_is_the_same_whenever_it_is_asked_for(tmp_path: Path) -> None:
    write_bodies(tmp_path, BODIES[:10], recorder=1)
    reader = stream(tmp_path)
    before = reader.initialOffset()
    write_bodies(tmp_path, BODIES[10:], recorder=2)
    assert reader.initialOffset() == before


def test_a_stream_that_shall_end_does_not_see_what_comes_meanwhile(tmp_path: Path) -> None:
    write_bodies(tmp_path, BODIES[:500], recorder=1)
    reader = stream(tmp_path)
    reader.prepareForTriggerAvailableNow()
    write_bodies(tmp_path, BODIES[500:], recorder=2)
    assert list(chain.from_iterable(follow(reader)[0])) == BODIES[:500]


def test_limits_are_told_and_all_available_means_all(tmp_path: Path) -> None:
    write_bodies(tmp_path, BODIES, per_frame=50, per_commit=1)
    assert stream(tmp_path).getDefaultReadLimit() == ReadAllAvailable()
    assert stream(tmp_path, maxBytesPerTrigger="9").getDefaultReadLimit() == ReadMaxBytes(9)
    reader = stream(tmp_path, maxOffsetsPerTrigger="9", maxBytesPerTrigger="9")
    assert reader.getDefaultReadLimit() == ReadMaxRows(9)
    start = reader.latestOffset(reader.initialOffset(), ReadMaxRows(9))
    assert values_of(reader, reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))) == BODIES


def test_the_lag_is_told_by_what_is_there(tmp_path: Path) -> None:
    write_bodies(tmp_path, BODIES)
    reader = stream(tmp_path)
    assert reader.reportLatestOffset() == follow(reader)[1]


def test_a_journal_that_became_shorter_is_a_loss(tmp_path: Path) -> None:
    write_bodies(tmp_path / "one", BODIES)
    write_bodies(tmp_path / "two", BODIES[:500])
    _, at = follow(stream(tmp_path / "one"))
    with pytest.raises(SparkError, match="before what was read"):
        follow(stream(tmp_path / "two"), at)
    assert follow(stream(tmp_path / "two", failOnDataLoss="false"), at) == ([], at)


def test_a_batch_is_what_lies_between_its_offsets(tmp_path: Path) -> None:
    write_bodies(tmp_path, BODIES, per_frame=50, per_commit=1)
    reader = stream(tmp_path, maxOffsetsPerTrigger="300")
    start = reader.latestOffset(reader.initialOffset(), ReadMaxRows(300))
    end = reader.latestOffset(start, ReadMaxRows(300))

    given = {"path": str(tmp_path), "startingOffsets": json.dumps(start), "endingOffsets": json.dumps(end)}
    options = read_options(given, streaming=False)
    batch = BatchReader(options, arrow_schema(default_schema(options)))
    assert values_of(batch, batch.partitions()) == BODIES[:300]
