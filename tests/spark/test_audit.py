"""An audit finds what was lost and what was done twice, and by whom, from the journal alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rvq.sim import World
from rvq.sim.history import Finished
from rvq.spark.audit import Audit, audit
from tests.spark.simulated import record
from tests.spark.stories import GROUP, A, B, C, Story, quiet
from tests.spark.writing import STREAM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def judged(spark: SparkSession, folder: Path, story: Story, **options: str) -> Audit:
    return audit(spark, str(story.write(folder)), **options)


def found(result: Audit, verdict: str) -> list[tuple[int, int, tuple[int, ...]]]:
    return [(one.first, one.last, one.receivers) for one in result.findings if one.verdict == verdict]


def test_all_done_once_is_good(spark: SparkSession, tmp_path: Path) -> None:
    result = judged(spark, tmp_path, quiet())
    assert result.good
    assert result.counts == {"recorded": 100, "done": 100}
    assert result.summary() == "recorded 100, done 100, lost 0, done twice 0"


def test_two_recorders_hear_the_same_words_once(spark: SparkSession, tmp_path: Path) -> None:
    story = quiet()
    story.write(tmp_path, 1)
    story.entries = [entry for entry in story.entries if not entry.rows]
    story.write(tmp_path, 2)
    assert audit(spark, str(tmp_path)).counts == {"recorded": 100, "done": 100}


def test_what_nobody_did_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    story = Story().stamp(1, [A, B]).send(1, 100).handle(A, 0, 2, 100).handle(B, 1, 1, 49).handle(B, 1, 53, 99)
    result = judged(spark, tmp_path, story.goodbye())
    assert not result.good
    assert (result.counts["lost"], result.counts["done"]) == (1, 99)
    assert found(result, "lost") == [(51, 51, ())]
    assert str(result.findings[0]) == f"lost: work, group {GROUP}, sender {STREAM:016x}, 51"


def test_what_two_did_is_told_with_their_names(spark: SparkSession, tmp_path: Path) -> None:
    story = Story().stamp(1, [A, B]).send(1, 100).handle(A, 0, 2, 100).handle(B, 1, 1, 99)
    result = judged(spark, tmp_path, story.after(5).handle(C, 1, 11, 13).goodbye())
    assert not result.good
    assert result.counts["done twice"] == 2
    assert found(result, "done twice") == [(11, 11, (B, C)), (13, 13, (B, C))]


def test_what_was_handed_over_or_tried_again_is_done_once(spark: SparkSession, tmp_path: Path) -> None:
    story = Story().stamp(1, [A]).send(1, 10).handle(A, 0, 1, 4).handle(A, 0, 5, 10, outcome=5)
    story.stamp(11, [A, B]).handle(B, 0, 5, 5, outcome=4, stamp=1).handle(B, 0, 5, 9, stamp=1)
    assert judged(spark, tmp_path, story.handle(B, 0, 10, 10, outcome=2, stamp=1).goodbye()).good


def test_a_stream_that_is_heard_may_yet_be_done(spark: SparkSession, tmp_path: Path) -> None:
    result = judged(spark, tmp_path, Story().stamp(1, [A]).send(1, 100).handle(A, 0, 1, 90))
    assert result.good
    assert result.counts["open"] == 10


def test_a_sender_that_died_long_ago_leaves_what_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    Story(stream=5).stamp(1, [A]).send(1, 10).handle(A, 0, 1, 9).write(tmp_path, 1)
    Story(stream=6).after(100).stamp(1, [A]).send(1, 10).write(tmp_path, 2)
    result = audit(spark, str(tmp_path))
    assert [(one.sender, one.first, one.last) for one in result.findings if one.verdict == "lost"] == [(5, 10, 10)]
    assert result.counts["open"] == 10


def test_where_words_are_missing_nothing_is_called_lost(spark: SparkSession, tmp_path: Path) -> None:
    story = Story().stamp(1, [A]).send(1, 30).handle(A, 0, 1, 10).handle(A, 0, 11, 20, lost=True).handle(A, 0, 21, 30)
    result = judged(spark, tmp_path, story.goodbye())
    assert result.good
    assert result.counts["unknown"] == 10
    assert result.gaps == {A: 1}


def test_the_word_of_a_sender_counts_as_well(spark: SparkSession, tmp_path: Path) -> None:
    story = Story().stamp(1, [A]).send(1, 30).handle(A, 0, 1, 10).alive(30, done_to=30).goodbye()
    result = judged(spark, tmp_path, story)
    assert result.good
    assert (result.counts["done"], result.counts["untold"]) == (30, 20)


def test_a_lost_head_hole_and_tail_are_found(spark: SparkSession, tmp_path: Path) -> None:
    story = Story().stamp(1, [A]).send(4, 10).send(13, 20).handle(A, 0, 1, 25).alive(25).goodbye()
    result = judged(spark, tmp_path, story)
    assert not result.good
    assert [(first, last) for first, last, _ in found(result, "unrecorded")] == [(1, 3), (11, 12), (21, 25)]


def test_another_label_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    Story(label="other").stamp(1, [A]).send(1, 10).goodbye().write(tmp_path)
    quiet().write(tmp_path)
    assert audit(spark, str(tmp_path), subscribe="work").good
    assert not audit(spark, str(tmp_path)).good


def a_world(keys: int, befalls: str) -> World:
    world = World(7)
    for _ in range(2):
        world.recorder("work", sync_s=0.02)
    world.run(until=0.5)
    world.sender("work", messages=240, rate=80.0, burst=4, keys=keys)
    for _ in range(3):
        world.receiver("work")
    world.run(until=1.5)
    if befalls == "one dies":
        world.receivers[0].crash()
    elif befalls == "one joins and one leaves":
        world.receiver("work")
        world.receivers[0].leave()
    elif befalls == "a recorder dies":
        world.recorders[0].crash()
    world.heal()
    assert world.settle()
    world.run(until=world.now + 1.0)
    return world


@pytest.mark.parametrize(
    ("keys", "befalls"), [(8, "one dies"), (0, "one joins and one leaves"), (0, "a recorder dies")]
)
def test_an_audit_of_a_world_says_what_happened_in_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: int, befalls: str
) -> None:
    world = record(tmp_path, monkeypatch, lambda: a_world(keys, befalls))
    result = audit(spark, str(tmp_path))
    finished = Counter((e.stream, e.sequence) for e in world.history if type(e) is Finished)
    # Recorders were there first: what was sent before any receiver was is the journal's alone.
    assert (result.counts["recorded"], result.counts["done"]) == (240, len(finished)), result.summary()
    assert not result.counts["lost"] + result.counts["unrecorded"] + result.counts["open"], result.summary()
    twice = {(f.sender, n) for f in result.findings if f.verdict == "done twice" for n in range(f.first, f.last + 1)}
    assert twice <= {message for message, count in finished.items() if count > 1}
