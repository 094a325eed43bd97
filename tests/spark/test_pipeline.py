"""Bus -> Spark -> bus: what comes in is worked on, and comes out, each once over restarts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rvq.bus import Bus
from rvq.spark.pipeline import pipeline
from tests.spark.listening import Listening
from tests.spark.talking import Talking
from tests.spark.writing import write_bodies

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def doubled(messages: DataFrame) -> DataFrame:
    return messages.selectExpr("2 * int(string(value)) AS value")


def test_what_comes_in_comes_out_worked_on(spark: SparkSession, bus: Bus, tmp_path: Path) -> None:
    journal = tmp_path / "journal"

    def run() -> None:
        options = {"checkpoint": str(tmp_path / "checkpoint"), "to": "out", "every": None}
        query = pipeline(spark, str(journal), "in", doubled, bus={"port": str(bus.port)}, **options)  # type: ignore[arg-type]
        query.awaitTermination()

    with Listening(bus, "out") as listening:
        write_bodies(journal, [f"{n}" for n in range(100)], label="in", recorder=1)
        run()
        write_bodies(journal, [f"{n}" for n in range(100, 150)], label="in", recorder=2)
        run()
    assert sorted(listening.bodies) == list(range(0, 300, 2))


def test_without_a_journal_it_goes_from_bus_to_bus_by_itself(spark: SparkSession, bus: Bus, tmp_path: Path) -> None:
    port = {"port": str(bus.port)}
    with Listening(bus, "out") as listening, Talking(bus, "in") as talking:
        query = pipeline(
            spark, None, "in", doubled, checkpoint=str(tmp_path), to="out", read={"bus": "lo", **port}, bus=port
        )
        try:
            bodies = talking.finish(60)
            query.processAllAvailable()
        finally:
            query.stop()
    assert sorted(listening.bodies) == [2 * int(body) for body in bodies]
