"""Bus -> Spark -> bus: readings of sensors, averaged in windows and enriched, and back on the bus.

`python examples/readings.py JOURNAL CHECKPOINT`: JOURNAL is what `rvq record JOURNAL --label readings` writes. Readings
are objects such as {"sensor": "s1", "celsius": 21.5}. What comes out on the label `climate` are objects such as
{"sensor": "s1", "room": "kitchen", "celsius": 21.1, "readings": 12, "from": "2026-01-31T17:00:00"}.
"""

import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from rvq.spark.pipeline import pipeline
from rvq.spark.session import make_session

ROOMS = [("s1", "kitchen"), ("s2", "hall"), ("s3", "cellar")]


def climate(readings: DataFrame) -> DataFrame:
    """One row for each sensor and ten seconds, with the room that the sensor is in."""
    rooms = readings.sparkSession.createDataFrame(ROOMS, "sensor STRING, room STRING")
    read = f.from_json(f.col("value").cast("string"), "sensor STRING, celsius DOUBLE")
    averages = (
        readings.select("timestamp", read.alias("reading"))
        .withWatermark("timestamp", "5 seconds")
        .groupBy(f.window("timestamp", "10 seconds"), "reading.sensor")
        .agg(f.round(f.avg("reading.celsius"), 2).alias("celsius"), f.count("*").alias("readings"))
    )
    start = f.date_format("window.start", "yyyy-MM-dd'T'HH:mm:ss").alias("from")
    body = f.struct("sensor", "room", "celsius", "readings", start)
    return averages.join(rooms, "sensor").select(body.alias("value"), f.col("sensor").alias("key"))


def main(journal: str, checkpoint: str) -> None:
    spark = make_session(name="readings")
    query = pipeline(spark, journal, "readings", climate, checkpoint=checkpoint, to="climate", every=None)
    query.awaitTermination()
    print("all that was there is done")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
