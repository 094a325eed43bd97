"""When a failed message is tried again: pure arithmetic."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvq.core.retries import Backoff
from rvq.errors import BadArgument


def test_the_first_retry_comes_at_once() -> None:
    assert Backoff().pause(1, Random(1)) == 0.0


def test_pauses_grow_by_the_factor_up_to_the_longest() -> None:
    backoff = Backoff(first=0.5, factor=3.0, most=10.0, jitter=0.0)
    assert [backoff.pause(attempt, Random(1)) for attempt in range(1, 7)] == [0.0, 0.5, 1.5, 4.5, 10.0, 10.0]


def test_a_message_that_has_failed_for_ever_still_has_a_pause() -> None:
    assert Backoff(jitter=0.0).pause(10**9, Random(1)) == 30.0


def test_what_failed_together_does_not_come_back_together() -> None:
    backoff, random = Backoff(), Random(1)
    assert len({backoff.pause(5, random) for _ in range(20)}) == 20


@given(st.integers(1, 200), st.floats(0, 1), st.integers(0, 99))
def test_jitter_only_shortens_a_pause_and_by_no_more_than_its_part(attempt: int, jitter: float, seed: int) -> None:
    longest = Backoff(jitter=0.0).pause(attempt, Random(seed))
    pause = Backoff(jitter=jitter).pause(attempt, Random(seed))
    assert (1 - jitter) * longest <= pause <= longest


@pytest.mark.parametrize(
    ("odd", "word"),
    [
        ({"first": -1.0}, "first"),
        ({"first": 5.0, "most": 1.0}, "most"),
        ({"most": float("inf")}, "most"),
        ({"first": float("nan")}, "first"),
        ({"factor": 0.5}, "factor"),
        ({"factor": 101.0}, "factor"),
        ({"jitter": 1.5}, "jitter"),
        ({"jitter": -0.1}, "jitter"),
        ({"first": "a"}, "first='a' is str, not a number"),
        ({"most": None}, "most=None is NoneType, not a number"),
    ],
)
def test_pauses_that_make_no_sense_are_refused_in_words(odd: dict[str, Any], word: str) -> None:
    with pytest.raises(BadArgument, match=word):
        Backoff(**odd)
