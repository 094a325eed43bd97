"""Bus -> Spark -> bus in one call: a journal as a stream, a function of data frames, a label. Owns only the plumbing.

The journal is what a recorder of the label writes, `rvq record` or the query's own; so Spark may be away for a day and
goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery


def pipeline(
    spark: SparkSession,
    journal: str | None,
    label: str,
    transform: Callable[[DataFrame], DataFrame],
    *,
    checkpoint: str,
    to: str | None = None,
    every: str | None = "500 milliseconds",
    mode: str = "append",
    starting: str = "earliest",
    read: dict[str, str] | None = None,
    bus: dict[str, str] | None = None,
) -> StreamingQuery:
    """Starts it. `transform` makes of the label's messages rows with `value`, and if need be `key`, `topic`, `headers`.

    journal: the folder that a recorder of the label writes; None: the bus itself, recorded under the checkpoint while
    the query runs, such as with read={"bus": "lo"}.
    to: the label that gets them, unless there is a column `topic`.  every: pause between batches; None for all that is
    there now, and then the query ends.  read, bus: more options of the source and of the sink.
    """
    options = {"subscribe": label, "startingOffsets": starting} | (read or {})
    if journal is None:
        options = {"bus": "env", "checkpointLocation": checkpoint} | options
    messages = spark.readStream.format("rvq").options(**options).load(journal)
    writer = transform(messages).writeStream.format("rvq").outputMode(mode).option("checkpointLocation", checkpoint)
    writer = writer.options(**({"topic": to} if to is not None else {}), **(bus or {}))
    writer = writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=every)
    return writer.start()
