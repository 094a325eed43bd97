"""At most so many per second."""

from __future__ import annotations

import pytest

from rvq.cli.pacer import BURST_S, STEP_S, Pacer


def sent_in(pacer: Pacer, seconds: float, now: float = 0.0) -> int:
    """How many go in that time if there is always one more."""
    end, sent = now + seconds, 0
    while now < end:
        took = pacer.take(now, 1_000_000)
        sent += took
        if not took:
            now += pacer.wait_s()
    return sent


@pytest.mark.parametrize("rate", [0.5, 1, 3, 100, 4_000, 1_000_000])
def test_it_keeps_the_rate(rate: float) -> None:
    assert sent_in(Pacer(rate, 0.0), 100.0) == pytest.approx(100 * rate, abs=max(2, rate * BURST_S))


def test_the_first_one_goes_at_once() -> None:
    assert Pacer(0.1, 5.0).take(5.0, 10) == 1


def test_no_more_are_taken_than_wanted() -> None:
    pacer = Pacer(1000, 0.0)
    assert pacer.take(1.0, 3) == 3
    assert pacer.take(1.0, 1000) == 1000 * BURST_S - 3


def test_a_pause_is_not_made_up_for() -> None:
    assert Pacer(1000, 0.0).take(3600.0, 1_000_000) == 1000 * BURST_S


def test_waits_are_not_so_short_that_they_cost_more_than_they_even_out() -> None:
    pacer = Pacer(1e9, 0.0)
    pacer.take(0.0, 1)
    assert pacer.wait_s() == STEP_S
