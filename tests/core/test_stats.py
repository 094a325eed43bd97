"""The catalogue of counters."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from dataclasses import asdict, fields
from itertools import pairwise

from rvq import limits
from rvq.core import stats
from rvq.core.stats import COUNTERS, Counts, Stats


def test_counters_begin_at_nothing() -> None:
    assert Counter(map(str, Stats().as_dict().values())) == {"0": 16, "{}": 2}
    assert set(asdict(Counts()).values()) == {0}


def test_a_dict_has_every_counter_by_its_name() -> None:
    counted = Stats(inserted=3, lost=1)
    assert counted.as_dict() == {**Stats().as_dict(), "inserted": 3, "lost": 1}


def test_what_was_never_counted_is_not_shown() -> None:
    assert repr(Stats()) == "Stats()"
    assert repr(Stats(inserted=3, lanes={0: Counts(acked=1)})).startswith("Stats(inserted=3, lanes={0: Counts(")


def test_a_counter_that_is_not_in_the_catalogue_cannot_be_counted() -> None:
    try:
        Stats().delivered = 1  # type: ignore[attr-defined]
    except AttributeError:
        return
    raise AssertionError("slots keep the catalogue complete")


def test_every_counter_says_whose_it_is_or_what_it_means() -> None:
    tree = ast.parse(inspect.getsource(stats))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Stats")
    for field, words in pairwise(body):
        if isinstance(field, ast.AnnAssign):
            assert isinstance(words, ast.Expr) and isinstance(words.value, ast.Constant), ast.unparse(field)


def test_lanes_and_shards_are_counted_by_names_of_the_catalogue() -> None:
    assert {field.name for field in fields(Counts)} <= {field.name for field in fields(Stats)}


def test_each_lane_and_each_shard_has_counters_of_its_own_from_when_it_is_first_asked_for() -> None:
    counted = Stats()
    counted.lane(3).acked += 2
    counted.lane(3).acked += 1
    counted.shard(3).dead += 1
    assert counted.lanes == {3: Counts(acked=3)}
    assert counted.shards == {3: Counts(dead=1)}
    assert counted.as_dict()["lanes"] == {3: {**asdict(Counts()), "acked": 3}}


def test_counters_are_told_in_the_order_of_the_catalogue() -> None:
    counted = Stats(inserted=1, routed=2, unrecorded=13)
    assert dict(zip(COUNTERS, counted.counters(), strict=True)) == {
        field.name: getattr(counted, field.name) for field in fields(Stats) if field.name not in ("lanes", "shards")
    }
    assert COUNTERS[0] == "inserted" and len(COUNTERS) < limits.COUNTERS_MAX
