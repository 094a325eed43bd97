"""A driver as a process of its own, which may be killed: `python -m tests.spark.driving MASTER JOURNAL OUT [OPTIONS]`.

OUT is a folder with `checkpoint`, and `parquet` unless `--port` sends to the label `work` instead.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

from tests.spark.conftest import settings


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("master")
    parser.add_argument("journal")
    parser.add_argument("out")
    parser.add_argument("--rows", default="1000")
    parser.add_argument("--port")
    parser.add_argument("--window", default="100")
    args = parser.parse_args()
    builder = SparkSession.builder.master(args.master).appName("rvq tests")
    for name, text in settings().items():
        builder = builder.config(name, text)
    builder = builder.config("spark.executor.memory", "512m").config("spark.cores.max", "2")
    spark = builder.getOrCreate()
    source = spark.readStream.format("rvq").option("startingOffsets", "earliest")
    frame = source.option("maxOffsetsPerTrigger", args.rows).option("minPartitions", "2").load(args.journal)
    frame = frame.selectExpr("string(value) AS value")
    writer = frame.writeStream.option("checkpointLocation", f"{args.out}/checkpoint").trigger(availableNow=True)
    if args.port is None:
        writer = writer.format("parquet").option("path", f"{args.out}/parquet")
    else:
        writer = writer.format("rvq").options(topic="work", port=args.port, window=args.window)
    query = writer.start()
    query.awaitTermination()
    print(f"executors {spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
