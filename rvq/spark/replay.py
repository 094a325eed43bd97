"""What a journal has, onto the bus again: chosen by label, time, key, sender and sequence. Owns the choice."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

COLUMNS = (
    "value BINARY, key BINARY, topic STRING, timestamp TIMESTAMP, sender BIGINT, sequence BIGINT, type STRING,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)


def chosen(
    spark: SparkSession,
    path: str,
    *,
    to: str | None = None,
    key: str | None = None,
    sender: int | None = None,
    first: int | None = None,
    last: int | None = None,
    **options: str,
) -> DataFrame:
    """The messages as rows for the sink, in the order in which they were sent. Each once, also if two recorders stored
    it. They go out as new messages, whose `id` names the old ones."""
    table = spark.read.format("rvq").schema(COLUMNS).options(**options).load(path)
    for column, wanted in (("key", key and key.encode()), ("sender", sender)):
        if wanted is not None:
            table = table.where(f.col(column) == f.lit(wanted))
    table = table.where(f.col("sequence").between(first or 0, last if last is not None else 2**62))
    table = table.dropDuplicates(["topic", "sender", "sequence"]).sort("timestamp", "sender", "sequence")
    name = f.concat_ws("-", f.lower(f.lpad(f.hex("sender"), 16, "0")), f.col("sequence"))
    return table.select(
        "value",
        "key",
        (f.lit(to) if to is not None else f.col("topic")).alias("topic"),
        "headers",
        "type",
        name.alias("id"),
    )


def replay(
    spark: SparkSession,
    path: str,
    *,
    bus: dict[str, str] | None = None,
    progress: Callable[[str], None] = lambda words: None,
    to: str | None = None,
    key: str | None = None,
    sender: int | None = None,
    first: int | None = None,
    last: int | None = None,
    **options: str,
) -> int:
    """Sends them, waits until all are done, and says how many."""
    table = chosen(spark, path, to=to, key=key, sender=sender, first=first, last=last, **options)
    table = table.cache()
    try:
        count = table.count()
        progress(f"sending {count:,} messages")
        if count:
            table.write.format("rvq").mode("append").options(**(bus or {})).save()
        return count
    finally:
        table.unpersist()
