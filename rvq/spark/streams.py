"""The history by streams: who is to be looked at together. Owns how it is cut into buckets over a cluster.

Words of control are few and every task may need them, so they go to the driver and from there to all. Frames and runs
of outcomes are many: each goes to the task of its bucket.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from rvq.spark import history as h
from rvq.spark.fates import BUCKET, Run, Sent, distinct
from rvq.spark.segments import GroupSegments, Said, segments_of

Stream = tuple[str, int]
"""A label and a sender."""

HISTORY: Final = (
    "kind STRING, topic STRING, `group` STRING, sender BIGINT, receiver BIGINT, timestamp TIMESTAMP, heard TIMESTAMP,"
    " first BIGINT, last BIGINT, step INT, count INT, stamp BIGINT, slot INT, outcome STRING, counter BIGINT,"
    " sequences BINARY, shards BINARY, detail STRING"
)


@dataclass(slots=True)
class Known:
    """What words of control say of one stream."""

    segments: dict[str, GroupSegments] = field(default_factory=dict)
    done_to: dict[str, int] = field(default_factory=dict)
    """By its sender's own word, for each group."""
    recorders: GroupSegments | None = None
    """The same of the journal's own group; None if no word of it is there."""
    first: int = 1
    """Of what is in the journal."""
    last: int = 0
    """It goes up to here at least."""
    over: bool = False
    """It said goodbye."""
    heard: float = 0.0
    """When anything was heard of it last."""


def read_history(spark: SparkSession, path: str, rows: str = "history", **options: str) -> DataFrame:
    return spark.read.format("rvq").schema(HISTORY).options(rows=rows, **options).load(path)


def known_streams(spark: SparkSession, path: str, history: DataFrame, **options: str) -> dict[Stream, Known]:
    """What is said of each stream of this history: words of control from the whole journal, since they hold on."""
    whole = {name: text for name, text in options.items() if "timestamp" not in name.lower()}
    found: dict[Stream, Known] = {}
    recorders: dict[Stream, str] = {}
    data = (
        history.where(f"kind = '{h.DATA}'")
        .groupBy("topic", "sender")
        .agg(
            f.min("first").alias("first"),
            f.max("last").alias("last"),
            f.max("heard").alias("heard"),
            f.min("group").alias("g"),
        )
    )
    for row in data.collect():
        found[row.topic, row.sender] = Known(first=row["first"], last=row["last"], heard=row.heard.timestamp())
        recorders[row.topic, row.sender] = row.g
    stamps: dict[Stream, list[Said]] = {}
    columns = ("kind", "topic", "sender", "heard", "first", "last", "stamp", "detail")
    for row in read_history(spark, path, "words", **whole).where("sender IS NOT NULL").select(*columns).collect():
        if row.kind == h.HANDLED:
            continue
        stream = (row.topic, row.sender)
        known = found.setdefault(stream, Known())
        known.heard = max(known.heard, row.heard.timestamp())
        if row.kind == h.STAMP:
            stamps.setdefault(stream, []).append(Said(row.stamp, row["first"], row.detail))
        elif row.kind == h.GOODBYE:
            known.over = True
        else:
            if whole == options:
                known.last = max(known.last, row["last"])
            for state in json.loads(row.detail):
                known.done_to[state["group"]] = max(known.done_to.get(state["group"], 0), state["done_to"])
    for stream, said in stamps.items():
        known = found[stream]
        known.segments = segments_of(said)
        known.recorders = known.segments.pop(recorders.get(stream, ""), None)
        if whole == options and known.recorders is not None:
            known.first = known.recorders.segments[0].at
    return found


NOTHING: Final = "nothing"
"""The kind of a row that only says that there is such a stream."""

Judge = Callable[[Stream, int, list[Sent], list[Run]], Iterable[tuple[Any, ...]]]
"""A bucket of a stream, by its number, and all that was said of it: rows."""


def each_bucket(history: DataFrame, known: dict[Stream, Known], judge: Judge, schema: str) -> DataFrame:
    """What `judge` says of each bucket of each stream."""
    spark = history.sparkSession
    of_messages = history.where(f"kind IN ('{h.DATA}', '{h.HANDLED}')").drop("count", "heard", "detail")
    # Every bucket of every stream is looked at, also where nothing was recorded of it.
    spans = [(*stream, one.first, one.last, NOTHING) for stream, one in known.items() if one.last >= one.first]
    every = spark.createDataFrame(spans, "topic STRING, sender BIGINT, first BIGINT, last BIGINT, kind STRING")
    parts = of_messages.unionByName(every, allowMissingColumns=True).selectExpr(
        "*", f"explode(sequence(first div {BUCKET}, last div {BUCKET})) AS bucket"
    )
    keys = ["topic", "sender", "bucket"]
    columns = [*keys, "kind", "group", "receiver", "timestamp", "first", "last", "step", "stamp", "slot", "outcome"]
    columns += ["counter", "sequences", "shards"]
    sorted_parts = parts.select(*columns).repartition(*keys).sortWithinPartitions(*keys, "timestamp")
    return spark.createDataFrame(sorted_parts.rdd.mapPartitions(_Judging(judge)), schema)


class _Judging:
    """What runs in a task: rows in, sorted by bucket; rows out."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def __call__(self, rows: Iterable[Row]) -> Iterator[tuple[Any, ...]]:
        key: tuple[str, int, int] | None = None
        sent: list[Sent] = []
        runs: list[tuple[Run, int]] = []
        for row in rows:
            if key != (row.topic, row.sender, row.bucket):
                if key is not None:
                    yield from self._judged(key, sent, runs)
                key, sent, runs = (row.topic, row.sender, row.bucket), [], []
            at = row.timestamp.timestamp() if row.timestamp else 0.0
            first, last = row["first"], row["last"]
            if row.kind == h.DATA:
                sent.append(Sent(first, last, row.step, row.sequences, row.shards, at))
            elif row.kind == h.HANDLED:
                run = Run(row.group, row.receiver, row.stamp, row.slot, first, last, row.outcome, at)
                runs.append((run, row.counter))
        if key is not None:
            yield from self._judged(key, sent, runs)

    def _judged(
        self, key: tuple[str, int, int], sent: list[Sent], runs: list[tuple[Run, int]]
    ) -> Iterable[tuple[Any, ...]]:
        topic, sender, bucket = key
        told = [run for run, _ in distinct(runs)]
        return self._judge((topic, sender), bucket, [Sent._make(map(_plain, one)) for one in sent], told)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
