"""The catalogue of counters."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise

from rvq.core import stats
from rvq.core.stats import Stats


def test_counters_begin_at_nothing() -> None:
    assert set(Stats().as_dict().values()) == {0}


def test_a_dict_has_every_counter_by_its_name() -> None:
    counted = Stats(inserted=3, lost=1)
    assert counted.as_dict() == {**Stats().as_dict(), "inserted": 3, "lost": 1}


def test_a_counter_that_is_not_in_the_catalogue_cannot_be_counted() -> None:
    try:
        Stats().delivered = 1  # type: ignore[attr-defined]
    except AttributeError:
        return
    raise AssertionError("slots keep the catalogue complete")


def test_every_counter_says_whose_it_is_or_what_it_means() -> None:
    tree = ast.parse(inspect.getsource(stats))
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef)).body
    for field, words in pairwise(body):
        if isinstance(field, ast.AnnAssign):
            assert isinstance(words, ast.Expr) and isinstance(words.value, ast.Constant), ast.unparse(field)
