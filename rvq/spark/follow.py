"""Stats as the journal grows: a stream says that there is more, and the windows that it touches are counted anew.

Owns which windows those are. What a window had is counted from the journal each time, so late words and restarts do no
harm, and nothing need be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from rvq.spark.stats import stats
from rvq.spark.streams import HISTORY

BEFORE_S: Final = 60.0
"""Messages may have been sent so long before they were done, and still have their latency counted."""

Show = Callable[[list[dict[str, Any]]], None]


def start(
    spark: SparkSession,
    path: str,
    show: Show,
    *,
    window_s: float = 10.0,
    by: Sequence[str] = ("label", "group", "receiver"),
    checkpoint: str | None = None,
    every: str | None = "1 second",
    **options: str,
) -> StreamingQuery:
    """Calls `show` with the rows of each window that has changed; again, when it has changed once more."""
    timeless = {name: text for name, text in options.items() if "timestamp" not in name.lower()}

    def on_batch(history: DataFrame, batch: int) -> None:
        found = history.agg(f.min("heard")).first()
        if found is None or found[0] is None:
            return
        low = found[0].timestamp() // window_s * window_s
        recent: dict[str, Any] = timeless | {"startingTimestamp": str(int((low - BEFORE_S) * 1000))}
        table = stats(spark, path, window_s=window_s, by=by, **recent)
        rows = table.where(f.col("window") >= f.timestamp_seconds(f.lit(low))).orderBy("window", *by)
        show([row.asDict() for row in rows.collect()])

    stream = spark.readStream.format("rvq").schema(HISTORY)
    stream = stream.options(rows="history", startingOffsets="earliest", **options)
    writer = stream.load(path).select("heard").writeStream.foreachBatch(on_batch)
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", checkpoint)
    return (writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=every)).start()


def follow(spark: SparkSession, path: str, show: Show, **options: Any) -> int:
    """Until it is interrupted."""
    query = start(spark, path, show, **options)
    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        query.stop()
    return 0
