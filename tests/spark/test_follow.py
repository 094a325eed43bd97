"""Stats that follow a journal count the windows that changed anew, and are right after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rvq.spark.follow import start
from tests.spark.stories import GROUP, A, Story
from tests.spark.writing import NOW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_windows_are_told_again_when_there_is_more(spark: SparkSession, tmp_path: Path) -> None:
    shown: list[list[dict[str, Any]]] = []

    def follow() -> dict[float, tuple[int, int]]:
        shown.clear()
        options: dict[str, Any] = {"by": ["group"], "every": None, "checkpoint": str(tmp_path / "checkpoint")}
        start(spark, str(tmp_path / "journal"), shown.append, **options).awaitTermination()
        rows = [row for rows in shown for row in rows if row["group"] == GROUP]
        return {row["window"].timestamp() - NOW: (row["routed"], row["acked"]) for row in rows}

    story = Story().stamp(1, [A]).send(1, 10)
    story.write(tmp_path / "journal", 1)
    assert follow() == {0.0: (10, 0)}
    story.entries.clear()
    story.after(1).handle(A, 0, 1, 10).after(10).send(11, 15).write(tmp_path / "journal", 2)
    assert follow() == {0.0: (10, 10), 10.0: (5, 0)}
    assert follow() == {}
