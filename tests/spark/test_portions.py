"""Batches are cut by rows and bytes, nobody starves, and tasks have all of it once."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from rvq.journal import JournalReader
from rvq.spark.chains import Chains
from rvq.spark.offsets import Offsets, head, tail
from rvq.spark.options import read_options
from rvq.spark.portions import next_end, tasks
from tests.spark.writing import write_bodies


class Place:
    """A journal of two recorders, one with much and one with little."""

    def __init__(self, folder: Path) -> None:
        write_bodies(folder, [b"%0100d" % n for n in range(5000)], per_frame=20, per_commit=1, recorder=1)
        write_bodies(folder, [b"%0100d" % n for n in range(200)], per_frame=20, per_commit=1, recorder=2)
        self.reader = JournalReader(folder)
        self.chains = Chains(self.reader, fail_on_data_loss=True)
        options = read_options({"path": str(folder)}, streaming=True)
        self.head, self.tail = head(self.reader, options), tail(self.reader, options)

    def rows(self, start: Offsets, end: Offsets) -> int:
        return sum(one.rows for slices in tasks(self.chains, start, end, 1) for one in slices)

    def step(self, start: Offsets, rows: float = inf, size: float = inf) -> Offsets:
        moved = {chain: at for chain, at in self.tail.items() if start.get(chain) != at}
        return start | next_end(self.reader, self.chains, start, moved, rows, size)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_without_limits_a_batch_is_all_there_is(place: Place) -> None:
    assert place.step(place.head) == place.tail


@pytest.mark.parametrize(("rows", "size"), [(1000, inf), (inf, 100_000), (1000, 100_000), (1, inf), (inf, 1)])
def test_batches_keep_their_limits_and_reach_the_end(place: Place, rows: float, size: float) -> None:
    at, taken, batches = place.head, [], 0
    while at != place.tail:
        before, at = at, place.step(at, rows, size)
        taken.append(place.rows(before, at))
        batches += 1
        assert batches < 1000
    assert sum(taken) == 5200
    assert max(taken) <= max(rows, 40)
    assert min(taken) > 0


def test_recorders_with_much_to_say_share_a_batch(place: Place, tmp_path: Path) -> None:
    write_bodies(tmp_path, [b"%0100d" % n for n in range(5000)], per_frame=20, per_commit=1, recorder=3)
    options = read_options({"path": str(tmp_path)}, streaming=True)
    start, place.tail = head(place.reader, options), tail(place.reader, options)
    end = place.step(start, 1000)
    rows = [place.rows({chain: at}, {chain: end[chain]}) for chain, at in start.items()]
    assert rows == [400, 200, 400]


def test_what_one_recorder_leaves_over_another_gets(place: Place) -> None:
    end = place.step(place.head, 1000)
    assert place.rows(place.head, end) > 900
    assert all(end[chain] != at for chain, at in place.head.items())


def test_tasks_have_everything_once_and_there_are_as_many_as_are_asked_for(place: Place) -> None:
    for least in (1, 3, 8):
        found = tasks(place.chains, place.head, place.tail, least)
        assert len(found) >= least
        assert sum(one.rows for slices in found for one in slices) == 5200
        assert found == tasks(place.chains, place.head, place.tail, least)


def test_a_recorder_that_was_not_there_is_read_from_its_beginning_or_not_at_all(place: Place) -> None:
    assert place.rows({}, place.tail) == 5200
    assert tasks(place.chains, {}, place.tail, 1, to_head=False) == []
