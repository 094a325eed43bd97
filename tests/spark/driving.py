"""A driver as a process of its own, which may be killed: `python -m tests.spark.driving MASTER JOURNAL OUT [OPTIONS]`.

OUT is a folder with `checkpoint`, and `parquet` unless `--port` sends to the label `work` instead. With `--bus` JOURNAL
is not read: what is sent to `work` at this port is, until there is a file OUT/stop.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.spark.conftest import settings


def wait_to_stop(query: StreamingQuery, told: Path) -> None:
    """What was there when it was told is read before."""
    while query.isActive and not told.exists():
        time.sleep(0.05)
    if query.isActive:
        query.processAllAvailable()
        query.stop()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("master")
    parser.add_argument("journal")
    parser.add_argument("out")
    parser.add_argument("--rows", default="1000")
    parser.add_argument("--port")
    parser.add_argument("--window", default="100")
    parser.add_argument("--bus")
    args = parser.parse_args()
    builder = SparkSession.builder.master(args.master).appName("rvq tests")
    for name, text in settings().items():
        builder = builder.config(name, text)
    builder = builder.config("spark.executor.memory", "512m").config("spark.cores.max", "2")
    spark = builder.getOrCreate()
    source = spark.readStream.format("rvq").option("startingOffsets", "earliest")
    source = source.option("maxOffsetsPerTrigger", args.rows).option("minPartitions", "2")
    checkpoint = {"checkpointLocation": f"{args.out}/checkpoint"}
    if args.bus is None:
        frame = source.load(args.journal)
    else:
        frame = source.options(bus="lo", port=args.bus, subscribe="work", **checkpoint).load()
    writer = frame.selectExpr("string(value) AS value").writeStream.options(**checkpoint)
    if args.bus is None:
        writer = writer.trigger(availableNow=True)
    if args.port is None:
        writer = writer.format("parquet").option("path", f"{args.out}/parquet")
    else:
        writer = writer.format("rvq").options(topic="work", port=args.port, window=args.window)
    query = writer.start()
    if args.bus is not None:
        wait_to_stop(query, Path(args.out) / "stop")
    query.awaitTermination()
    print(f"executors {spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
