"""Streams are known from the whole journal, and each bucket is judged once, with all that was said of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rvq.spark import streams
from rvq.spark.fates import Run, Sent
from rvq.spark.streams import Stream, each_bucket, known_streams, read_history
from tests.spark.stories import GROUP, A, B, Story, quiet
from tests.spark.writing import NOW, STREAM

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def tell(stream: Stream, number: int, sent: list[Sent], runs: list[Run]) -> list[tuple[Any, ...]]:
    return [(number, len(sent), len(runs))]


def test_what_is_known_of_a_stream_is_what_was_said_of_it(spark: SparkSession, tmp_path: Path) -> None:
    path = str(quiet().write(tmp_path))
    history = read_history(spark, path)
    known = known_streams(spark, path, history)["work", STREAM]
    assert (known.first, known.last, known.over, known.done_to) == (1, 100, True, {GROUP: 100})
    assert list(known.segments) == [GROUP], "the recorders are not audited by themselves"
    assert known.recorders is not None
    assert known.heard == NOW + 0.25


def test_each_bucket_has_the_frames_and_runs_that_touch_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "BUCKET", 40)
    path = str(Story().stamp(1, [A, B]).send(1, 50).send(51, 60).handle(A, 0, 2, 60).alive(130).write(tmp_path))
    history = read_history(spark, path)
    known = known_streams(spark, path, history)
    rows = each_bucket(history, known, tell, "number INT, sent INT, runs INT").collect()
    assert sorted(map(tuple, rows)) == [(0, 1, 1), (1, 2, 1), (2, 0, 0), (3, 0, 0)]
