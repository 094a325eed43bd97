"""Windows count what was inserted, routed, emitted and acked, how long it took, and what was left."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from rvq.spark.stats import stats
from tests.spark.stories import GROUP, A, B, Story
from tests.spark.writing import NOW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A hundred messages in one window and fifty in the next; half of the first are handled a window later."""
    story = Story().stamp(1, [A, B]).send(1, 100).after(0.5).handle(A, 0, 2, 100)
    story.after(10).send(101, 150).handle(B, 1, 1, 99).after(0.02).handle(B, 1, 101, 149, outcome=4)
    story.handle(A, 0, 102, 150).handle(B, 1, 101, 147)
    return str(story.write(tmp_path_factory.mktemp("stats")))


def table(spark: SparkSession, journal: str, **options: Any) -> list[dict[str, Any]]:
    return [row.asDict() for row in stats(spark, journal, **options).orderBy("window").collect()]


def test_each_window_has_its_counts(spark: SparkSession, journal: str) -> None:
    rows = table(spark, journal, by=["label", "group"])
    own = [row for row in rows if row["group"] == GROUP]
    assert [row["window"].timestamp() for row in own] == [NOW, NOW + 10]
    names = ("routed", "emitted", "acked", "retried", "dead", "lag")
    assert [[row[name] for name in names] for row in own] == [[100, 50, 50, 0, 0, 50], [50, 50 + 49 + 25, 99, 25, 0, 1]]
    assert [row["inserted"] for row in rows if row["group"] is None] == [100, 50]


def test_latency_is_from_sent_to_acked(spark: SparkSession, journal: str) -> None:
    first, second = [row for row in table(spark, journal, by=["group"]) if row["group"] == GROUP]
    assert first["p50_ms"] == pytest.approx(500, rel=0.01)
    assert second["p50_ms"] == pytest.approx(10_500, rel=0.01)
    assert second["p99_ms"] == pytest.approx(10_500, rel=0.01)


def test_receivers_are_told_apart_by_what_they_did_and_what_was_theirs(spark: SparkSession, journal: str) -> None:
    done: Counter[int] = Counter()
    routed: Counter[int] = Counter()
    for row in table(spark, journal, by=["receiver"]):
        done[row["receiver"]] += row["acked"]
        routed[row["receiver"]] += row["routed"]
    assert {id: done[id] for id in (A, B)} == {A: 75, B: 74}
    assert {id: routed[id] for id in (A, B)} == {A: 75, B: 75}


def test_a_part_of_the_time_knows_the_stamps_of_before(spark: SparkSession, journal: str) -> None:
    rows = table(spark, journal, by=["group"], startingTimestamp=f"{int(NOW + 5)}000")
    assert [row["routed"] for row in rows if row["group"] == GROUP] == [50]
