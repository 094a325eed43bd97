"""Windows of time: what was inserted, routed, emitted, acknowledged, how long it took, and how much was left.

Owns which column means what. Words are those of `Stats`: inserted by senders, routed to the receiver whose lane it was,
emitted to its handler, acked when that was done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from rvq.spark import history as h
from rvq.spark.fates import ACKED, SETTLED, Bucket, Fate, Run, Sent
from rvq.spark.segments import Array, GroupSegments
from rvq.spark.streams import Known, Stream, each_bucket, known_streams, read_history
from rvq.wire.records import NO_SHARD

BY: Final = ("label", "group", "receiver", "shard")
COUNTS: Final = ("inserted", "routed", "emitted", "acked", "retried", "dead", "expired", "handed_over", "unreadable")
LATENCY: Final = "latency"
SETTLED_COUNT: Final = "settled"
DIGITS: Final = 2
"""Behind the first one, of latencies: a percentile is right to a percent, and a window has some hundreds of them."""

_EMITTED: Final = frozenset({"acked", "dead", "retried"})
_SCHEMA: Final = (
    "window DOUBLE, label STRING, `group` STRING, receiver BIGINT, shard INT, what STRING, ms DOUBLE, count BIGINT"
)

Progress = Callable[[str], None]


def stats(
    spark: SparkSession,
    path: str,
    *,
    window_s: float = 10.0,
    by: Sequence[str] = ("label", "group", "receiver"),
    progress: Progress = lambda words: None,
    **options: str,
) -> DataFrame:
    """One row for each window and value of `by`: counts, p50 and p99 latency in ms, and `lag`, what was then undone."""
    history = read_history(spark, path, **options)
    progress("reading what was said")
    known = known_streams(spark, path, history, **options)
    progress(f"{len(known)} streams; counting in windows of {window_s:g} s")
    return in_windows(each_bucket(history, known, partial(count, known, window_s, "shard" in by), _SCHEMA), by)


def in_windows(counted: DataFrame, by: Sequence[str]) -> DataFrame:
    """What buckets counted, by window."""
    keys = ["window", *by]
    sums = [f.expr(f"sum(IF(what = '{name}', count, 0))").alias(name) for name in (*COUNTS, SETTLED_COUNT)]
    percentiles = f.expr(f"percentile(ms, array(0.5, 0.99), IF(what = '{LATENCY}', count, 0))").alias("percentiles")
    table = counted.groupBy(*keys).agg(*sums, percentiles)
    rising = Window.partitionBy(*by).orderBy("window")
    lag = f.greatest(f.sum(f.col("routed") - f.col(SETTLED_COUNT)).over(rising), f.lit(0))
    return table.withColumn("lag", lag).select(
        f.timestamp_micros((f.col("window") * 1_000_000).cast("bigint")).alias("window"),
        *(f.col(name) for name in by),
        *(f.col(name) for name in COUNTS),
        "lag",
        f.col("percentiles")[0].alias("p50_ms"),
        f.col("percentiles")[1].alias("p99_ms"),
    )


def switches(spark: SparkSession, path: str, **options: str) -> list[tuple[float, str]]:
    """When a group's work was dealt anew, and to how many: (time, words)."""
    stamps = read_history(spark, path, "words", **options).where(f"kind = '{h.STAMP}'")
    found: dict[tuple[str, str, int], float] = {}
    words: dict[tuple[str, str, int], str] = {}
    for row in stamps.select("topic", "heard", "detail").orderBy("heard").collect():
        for entry in json.loads(row.detail)["groups"]:
            table = (row.topic, entry["group"], entry["version"][0])
            found.setdefault(table, row.heard.timestamp())
            words[table] = f"{row.topic}, group {entry['group']}: {len(entry['members'])} receivers"
    return sorted((at, words[table]) for table, at in found.items())


def count(
    streams: dict[Stream, Known],
    window_s: float,
    by_shard: bool,
    stream: Stream,
    number: int,
    sent: list[Sent],
    runs: list[Run],
) -> Iterable[tuple[Any, ...]]:
    """One bucket's counts."""
    label = stream[0]
    bucket = Bucket(number)
    for one in sent:
        bucket.add(one)
    recorded = np.flatnonzero(bucket.recorded)
    shards = bucket.shards if by_shard else None
    windows = np.floor(bucket.sent_at / window_s) * window_s
    counted = _Counted(label, shards)
    counted.add("inserted", None, None, recorded, windows[recorded])
    known = streams.get(stream, Known())
    for group, segments in known.segments.items():
        mine = [run for run in runs if run.group == group]
        for receiver, places in _routed(bucket, segments, recorded):
            counted.add("routed", group, receiver, places, windows[places])
        fate = Fate(bucket, segments)
        for run in sorted(mine, key=lambda run: run.at):
            window = np.floor(run.at / window_s) * window_s
            if run.outcome in SETTLED:
                fresh = bucket.places(segments, run)
                counted.add(SETTLED_COUNT, group, run.receiver, fresh[fate.settled[fresh] == 0], window)
            fresh = fate.add(run)
            counted.add(run.outcome, group, run.receiver, fresh, window)
            if run.outcome in _EMITTED:
                counted.add("emitted", group, run.receiver, fresh, window)
            if run.outcome == ACKED:
                took = (run.at - bucket.sent_at[fresh]) * 1000
                counted.add_latencies(group, run.receiver, fresh, window, took)
    yield from counted.rows()


def _routed(bucket: Bucket, segments: GroupSegments, recorded: Array) -> Iterable[tuple[int, Array]]:
    """The messages of each receiver, as they were stamped."""
    sequences = recorded + bucket.base
    for segment in segments.segments:
        inside = recorded[(sequences >= segment.at) & (sequences <= segment.end)]
        if not len(inside):
            continue
        slots = segment.slots_of(inside + bucket.base, bucket.shards[inside])
        owners = np.asarray(segment.owners)[slots]
        for receiver in np.unique(owners):
            yield int(receiver), inside[owners == receiver]


class _Counted:
    """Counts by window, group, receiver and shard, while a bucket is looked at."""

    def __init__(self, label: str, shards: Array | None) -> None:
        self._label = label
        self._shards = shards
        self._counts: dict[tuple[Any, ...], int] = {}

    def add(self, what: str, group: str | None, receiver: int | None, places: Array, windows: Any) -> None:
        self._add(what, group, receiver, places, windows, 0.0)

    def add_latencies(self, group: str, receiver: int, places: Array, window: float, ms: Array) -> None:
        seen = ~np.isnan(ms)
        rounded = _rounded(np.maximum(ms[seen], 0.001))
        self._add(LATENCY, group, receiver, places[seen], window, rounded)

    def _add(self, what: str, group: str | None, receiver: int | None, places: Array, windows: Any, ms: Any) -> None:
        if not len(places):
            return
        size = len(places)
        shards = np.full(size, NO_SHARD) if self._shards is None else self._shards[places]
        columns = np.stack([np.broadcast_to(windows, size), shards, np.broadcast_to(ms, size)])
        found, many = np.unique(columns, axis=1, return_counts=True)
        for (window, shard, took), n in zip(found.T.tolist(), many.tolist(), strict=True):
            key = (window, group, receiver, None if shard == NO_SHARD else int(shard), what, took)
            self._counts[key] = self._counts.get(key, 0) + n

    def rows(self) -> Iterable[tuple[Any, ...]]:
        for (window, group, receiver, shard, what, ms), n in self._counts.items():
            yield window, self._label, group, receiver, shard, what, ms, n


def _rounded(ms: Array) -> Array:
    """To so many digits behind the first."""
    scale: Array = 10.0 ** (DIGITS - np.floor(np.log10(ms)))
    rounded: Array = np.round(ms * scale) / scale
    return rounded
