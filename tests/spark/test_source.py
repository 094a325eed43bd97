"""`format("rvq")` on a real Spark: registered by its name, as a batch and as a stream."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rvq.bus import Bus
from rvq.journal import verify
from tests.spark.talking import Talking
from tests.spark.writing import write_bodies

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BODIES = [f"text {n}" for n in range(3000)]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("journal")
    yield write_bodies(folder, BODIES)
    shutil.rmtree(folder)


def texts(frame: DataFrame) -> list[str]:
    return sorted(
        (row[0] for row in frame.selectExpr("string(value)").collect()), key=lambda text: int(text.split()[1])
    )


def texts_of(frame: DataFrame) -> Counter[str]:
    return Counter(row[0] for row in frame.selectExpr("string(value)").collect())


def run(frame: DataFrame, folder: Path, **options: str) -> list[dict[str, Any]]:
    """The stream into Parquet until it has all that is there; the progress of each batch."""
    query = (
        frame.writeStream.format("parquet")
        .options(checkpointLocation=str(folder / "checkpoint"), path=str(folder / "out"), **options)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [progress for progress in query.recentProgress if progress["numInputRows"]]


def test_a_journal_is_a_table(spark: SparkSession, journal: Path) -> None:
    frame = spark.read.format("rvq").option("subscribe", "work").load(str(journal))
    assert texts(frame) == BODIES
    assert frame.where("sequence <= 10").count() == 10
    assert frame.count() == 3000


def test_a_schema_is_a_projection(spark: SparkSession, journal: Path) -> None:
    frame = spark.read.format("rvq").schema("sequence BIGINT, shard INT").load(str(journal))
    assert frame.columns == ["sequence", "shard"]
    assert frame.selectExpr("sum(sequence)", "count(shard)").first() == (3000 * 3001 // 2, 0)


def test_a_journal_is_a_stream_that_is_taken_up_where_it_was_left(
    spark: SparkSession, journal: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(journal, tmp_path / "journal"))

    def frame() -> DataFrame:
        return (
            spark.readStream.format("rvq")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", 1000)
            .load(str(copy))
        )

    progress = run(frame(), tmp_path)
    assert len(progress) >= 3
    assert progress[0]["sources"][0]["latestOffset"] is not None
    write_bodies(copy, ["text 3000"], recorder=2)
    run(frame(), tmp_path)
    assert texts(spark.read.parquet(str(tmp_path / "out"))) == [*BODIES, "text 3000"]


def test_one_line_reads_the_bus_with_no_other_process(spark: SparkSession, bus: Bus, tmp_path: Path) -> None:
    checkpoint = {"checkpointLocation": str(tmp_path / "checkpoint")}
    where = {"bus": "lo", "port": str(bus.port), "subscribe": "work", "keep": "1h"}
    with Talking(bus) as talking:
        frame = spark.readStream.format("rvq").options(**where, **checkpoint).load()
        writer = frame.writeStream.format("parquet").options(path=str(tmp_path / "out"), **checkpoint)
        query = writer.start()
        try:
            bodies = talking.finish(60)
            query.processAllAvailable()
        finally:
            query.stop()
    assert texts_of(spark.read.parquet(str(tmp_path / "out"))) == Counter(bodies)
    folder = tmp_path / "checkpoint/rvq-source"
    until(lambda: verify(folder).findings == [], "it left in good order: nothing is left open")


def until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ("nowhere", {}, "no such folder: give the folder of a journal"),
        (".", {}, "not a journal, since it has no journal.json"),
        (None, {"minPartitions": "few"}, "not a whole number from 1"),
        (None, {"newest": "1"}, "no option is called 'newest'"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(
    spark: SparkSession, journal: Path, tmp_path: Path, path: str | None, options: dict[str, str], words: str
) -> None:
    where = journal if path is None else tmp_path / path
    with pytest.raises(Exception, match=words):
        spark.read.format("rvq").options(**options).load(str(where)).count()


def test_a_journal_of_a_newer_version_is_refused(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(journal, tmp_path / "journal"))
    marker = copy / "journal.json"
    marker.write_text(marker.read_text().replace('"version": 1', '"version": 9'))
    with pytest.raises(Exception, match="written by a newer rvq"):
        spark.read.format("rvq").load(str(copy)).count()
