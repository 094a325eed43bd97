"""Was I awake? Times are numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvq.core.naps import Naps

SLACK = 0.1


@pytest.fixture
def naps() -> Naps:
    return Naps(SLACK)


def test_before_anything_is_expected_nobody_is_late(naps: Naps) -> None:
    assert naps.slept(1e9) == 0.0


def test_a_call_before_its_time_is_no_nap(naps: Naps) -> None:
    naps.expect(10.0)
    assert naps.slept(9.0) == 0.0


def test_a_little_late_is_no_nap(naps: Naps) -> None:
    naps.expect(10.0)
    assert naps.slept(10.0 + SLACK / 2) == 0.0


def test_a_nap_counts_from_when_the_call_was_due(naps: Naps) -> None:
    naps.expect(10.0)
    assert naps.slept(13.5) == pytest.approx(3.5)


def test_a_nap_counts_once(naps: Naps) -> None:
    naps.expect(10.0)
    assert naps.slept(13.5) > 0
    assert naps.slept(13.5) == 0.0
    assert naps.slept(13.5 + SLACK / 2) == 0.0


def test_one_who_naps_again_before_saying_what_to_expect_slept_the_rest(naps: Naps) -> None:
    naps.expect(10.0)
    assert naps.slept(13.5) + naps.slept(15.0) == pytest.approx(5.0)


def test_after_a_nap_the_next_one_counts_from_the_new_deadline(naps: Naps) -> None:
    naps.expect(10.0)
    naps.slept(13.5)
    naps.expect(14.0)
    assert naps.slept(14.0) == 0.0
    assert naps.slept(16.0) == pytest.approx(2.0)


def test_what_was_due_long_ago_is_no_nap_of_one_who_was_awake_since(naps: Naps) -> None:
    naps.expect(10.0)
    assert naps.slept(10.0) == 0.0
    naps.expect(0.0)
    assert naps.slept(10.0) == 0.0
    assert naps.slept(13.0) == pytest.approx(3.0)


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=30))
def test_naps_never_add_up_to_more_than_the_time_that_passed(steps: list[float]) -> None:
    naps, now, slept = Naps(SLACK), 0.0, 0.0
    naps.expect(0.0)
    for step in steps:
        now += step
        slept += naps.slept(now)
    assert -1e-9 <= now - slept <= SLACK + 1e-9


@given(st.lists(st.tuples(st.booleans(), st.floats(0.0, 10.0)), min_size=1, max_size=30))
def test_who_compares_before_asking_misses_no_nap(steps: list[tuple[bool, float]]) -> None:
    naps, now = Naps(SLACK), 0.0
    for expects, step in steps:
        now += step
        if expects:
            naps.expect(now + step)
        late = now > naps.late_at
        assert late == (naps.slept(now) > 0)
