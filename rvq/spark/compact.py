"""A journal as Parquet that anything reads: by label, date and shard. Owns the layout, and that it appears at once."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from rvq.errors import SparkError
from rvq.wire.records import SHARDS

COLUMNS: Final = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, sender BIGINT,"
    " sequence BIGINT, shard INT, type STRING, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
RANGES: Final = 16
"""Folders of shards: of 1024 shards each would have a file a day, most of them tiny."""
NO_KEY: Final = "none"


def compact(
    spark: SparkSession,
    path: str,
    out: str,
    *,
    ranges: int = RANGES,
    progress: Callable[[str], None] = lambda words: None,
    **options: str,
) -> int:
    """Writes `out/label=…/date=…/shards=…/*.parquet`, sorted by time, and says how many messages.

    Nothing is at `out` before all of it is. SparkError if something is there already. A message that two recorders
    stored, at a takeover, is in it once.
    """
    if not 1 <= ranges <= SHARDS:
        raise SparkError(f"ranges={ranges} is not from 1 to {SHARDS}")
    target = _Place(spark, out)
    if target.exists():
        raise SparkError(f"{out} is there already: give a folder that is not, or remove it")
    width = -(-SHARDS // ranges)
    messages = spark.read.format("rvq").schema(COLUMNS).options(**options).load(path)
    low = f.col("shard") - f.col("shard") % width
    named = f.concat(f.format_string("%04d", low), f.lit("-"), f.format_string("%04d", low + (width - 1)))
    table = (
        messages.dropDuplicates(["topic", "sender", "sequence"])
        .withColumn("label", f.col("topic"))
        .withColumn("date", f.to_date("timestamp"))
        .withColumn("shards", f.when(f.col("shard").isNull(), NO_KEY).otherwise(named))
        .drop("topic")
    )
    progress("writing")
    new = _Place(spark, f"{out.rstrip('/')}.{uuid.uuid4().hex[:8]}.new")
    keys = ["label", "date", "shards"]
    try:
        table.repartition(*keys).sortWithinPartitions(*keys, "timestamp", "sender", "sequence").write.partitionBy(
            *keys
        ).option("compression", "zstd").parquet(new.path)
        count = spark.read.parquet(new.path).count()
        if not new.rename(target):
            raise SparkError(f"{out} came to be while this was written: what was written is removed")
    except BaseException:
        new.remove()
        raise
    return count


class _Place:
    """A path in whatever file system Spark has."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm: Any = spark.sparkContext._jvm
        java: Any = spark.sparkContext._jsc
        self.path = path
        self._path = jvm.org.apache.hadoop.fs.Path(path)
        self._files = self._path.getFileSystem(java.hadoopConfiguration())

    def exists(self) -> bool:
        return bool(self._files.exists(self._path))

    def rename(self, to: _Place) -> bool:
        return not to.exists() and bool(self._files.rename(self._path, to._path))

    def remove(self) -> None:
        self._files.delete(self._path, True)
