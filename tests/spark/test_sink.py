"""`df.write` and `df.writeStream`: onto the bus, once, from a real Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rvq.bus import Bus
from rvq.errors import SparkError
from rvq.spark.sink import write_options
from tests.spark.listening import Listening
from tests.spark.writing import write_bodies

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_rows_are_messages(spark: SparkSession, bus: Bus) -> None:
    frame = spark.range(500).selectExpr("named_struct('n', id) AS value", "string(id % 3) AS key", "string(id) AS id")
    with Listening(bus) as listening:
        frame.write.format("rvq").mode("append").options(topic="work", port=bus.port).save()
    assert sorted(body["n"] for body in listening.bodies) == list(range(500))
    first = listening.messages[0]
    assert (first.key, first.headers) == (str(first.body["n"] % 3), {"id": str(first.body["n"])})


def test_a_run_that_has_a_name_is_not_sent_twice(spark: SparkSession, bus: Bus, tmp_path: Path) -> None:
    writer = spark.range(50).selectExpr("id AS value").write.format("rvq").mode("append")
    options = {"topic": "work", "port": str(bus.port), "progress": str(tmp_path), "runId": "first"}
    with Listening(bus) as listening:
        writer.options(**options).save()
        writer.options(**options).save()
    assert sorted(listening.bodies) == list(range(50))


def test_from_the_journal_onto_the_bus(spark: SparkSession, bus: Bus, tmp_path: Path) -> None:
    journal = write_bodies(tmp_path / "journal", [f"{n}" for n in range(1000)])

    def run() -> None:
        frame = spark.readStream.format("rvq").option("startingOffsets", "earliest")
        query = (
            frame.option("maxOffsetsPerTrigger", 400)
            .load(str(journal))
            .selectExpr("string(value) AS value", "'work' AS topic")
            .writeStream.format("rvq")
            .options(checkpointLocation=str(tmp_path / "checkpoint"), port=bus.port)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    with Listening(bus) as listening:
        run()
        run()
        # As if the driver had been killed between the last message and Spark's own note of it: the batch comes again.
        folder = tmp_path / "checkpoint/commits"
        newest = max((path for path in folder.iterdir() if path.name.isdecimal()), key=lambda path: int(path.name))
        for path in (newest, folder / f".{newest.name}.crc"):
            path.unlink()
        run()
    assert sorted(listening.bodies, key=int) == [f"{n}" for n in range(1000)]


def failing_once(folder: str, at: int):  # type: ignore[no-untyped-def]  # runs in a task
    def values(rows):  # type: ignore[no-untyped-def]
        import os

        for row in rows:
            if row.id == at:
                try:
                    os.close(os.open(f"{folder}/failed", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    pass
                else:
                    raise RuntimeError("on purpose")
            yield (row.id,)

    return values


def test_a_failed_task_repeats_nothing(spark: SparkSession, bus: Bus, tmp_path: Path) -> None:
    frame: DataFrame = spark.range(0, 2000, numPartitions=4)
    values = spark.createDataFrame(frame.rdd.mapPartitions(failing_once(str(tmp_path), 1300)), "value BIGINT")
    with Listening(bus) as listening:
        values.write.format("rvq").mode("append").options(topic="work", port=bus.port).save()
    assert (tmp_path / "failed").exists(), "there was something to survive"
    assert Counter(listening.bodies) == Counter(range(2000))


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ("id", {"topic": "work"}, "column 'id' is bigint|column 'id' cannot be sent|no column is called 'value'"),
        ("id AS value", {}, "no label to send to"),
        ("now() AS value", {"topic": "work"}, "column 'value' has timestamp, which no message can have"),
        ("id AS value", {"topic": "work", "window": "0"}, "window='0' is not a whole number from 1"),
        ("id AS value", {"topic": "work", "runId": "x"}, "progress and runId belong together"),
        ("id AS value", {"topic": "work", "label": "x"}, "no option is called 'label'"),
    ],
)
def test_what_cannot_be_sent_is_said_in_a_sentence(
    spark: SparkSession, columns: str, options: dict[str, str], words: str
) -> None:
    with pytest.raises(Exception, match=words):
        spark.range(3).selectExpr(columns).write.format("rvq").mode("append").options(**options).save()


def test_a_label_cannot_be_overwritten(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="cannot be overwritten"):
        spark.range(3).selectExpr("id AS value").write.format("rvq").mode("overwrite").option("topic", "work").save()


def test_what_was_sent_is_kept_in_the_checkpoint_if_it_is_a_folder() -> None:
    def progress(checkpoint: str) -> str | None:
        return write_options({"topic": "a", "checkpointLocation": checkpoint}, streaming=True).progress

    assert progress("/c/d") == progress("file:///c/d") == "/c/d/rvq-sink"
    assert progress("hdfs://host/c") is None
    with pytest.raises(SparkError, match="belong together"):
        write_options({"topic": "a", "progress": "/p"}, streaming=False)


def test_a_key_file_seals_what_is_sent() -> None:
    options = write_options({"topic": "a", "keyFile": "/etc/bus.key", "port": "7401"}, streaming=False)
    assert options.bus == {"key": "/etc/bus.key", "port": 7401}
    assert write_options({"topic": "a"}, streaming=False).bus == {}
