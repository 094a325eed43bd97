"""The verdict on a fleet can fail: each check finds what it is there to find."""

from __future__ import annotations

import pytest

from tests.processes.harness import Handling, Verdict, before_death


def handled(
    message: str, by: str, start: float, finish: float | None, key: str = "k", redelivered: bool = False
) -> Handling:
    return Handling(message, by, start, 1, redelivered, key, finish)


def test_everything_once_passes() -> None:
    verdict = Verdict({"a/0", "a/1"}, [handled("a/0", "r", 1, 2), handled("a/1", "q", 2, 3)])
    verdict.assert_all_once()
    verdict.assert_keys_in_order()


def test_a_lost_message_fails() -> None:
    with pytest.raises(AssertionError, match="1 of 2 lost"):
        Verdict({"a/0", "a/1"}, [handled("a/0", "r", 1, 2)]).assert_all_once()


def test_an_invented_message_fails() -> None:
    with pytest.raises(AssertionError, match="1 invented"):
        Verdict(set(), [handled("b/0", "r", 1, 2)]).assert_all_once()


REPEATED = Verdict({"a/0"}, [handled("a/0", "r", 5, 9), handled("a/0", "q", 7, 8, redelivered=True)])


def test_a_repeated_message_fails() -> None:
    with pytest.raises(AssertionError, match="1 repeated without a cause"):
        REPEATED.assert_all_once()


@pytest.mark.parametrize(
    ("faults", "excused"),
    [
        ({"r": [before_death(6)]}, True),
        ({"r": [before_death(9.1)]}, True),
        ({"r": [before_death(10)]}, False),  # it was reported long before
        ({"r": [before_death(4)]}, False),  # the dead do not start messages
        ({"q": [before_death(6)]}, False),  # another one
    ],
)
def test_only_the_unreported_work_of_the_dead_may_be_repeated(
    faults: dict[str, list[tuple[float, float]]], excused: bool
) -> None:
    if excused:
        REPEATED.assert_repeats_only(faults)
    else:
        with pytest.raises(AssertionError, match="without a cause"):
            REPEATED.assert_repeats_only(faults)


def test_a_receiver_that_got_no_turn_counts_as_stopped_from_then_on() -> None:
    handlings = [handled("a/0", "r", 5, 9), handled("a/0", "q", 7, 8, redelivered=True)]
    Verdict({"a/0"}, handlings, {"r": [5.01]}).assert_all_once()
    Verdict({"a/0"}, handlings, {"r": [5.01]}).assert_one_at_a_time()
    for naps in ({"r": [4.5]}, {"r": [9.5]}, {"q": [7.5]}):
        with pytest.raises(AssertionError, match="without a cause"):
            Verdict({"a/0"}, handlings, naps).assert_all_once()
        with pytest.raises(AssertionError, match="overlaps"):
            Verdict({"a/0"}, handlings, naps).assert_one_at_a_time()


def test_a_repeated_message_that_does_not_say_so_fails() -> None:
    verdict = Verdict({"a/0"}, [handled("a/0", "r", 5, 9), handled("a/0", "q", 7, 8)])
    with pytest.raises(AssertionError, match="not marked as redelivered"):
        verdict.assert_repeats_only({"r": [before_death(6)]})


def test_two_at_the_same_time_fail() -> None:
    with pytest.raises(AssertionError, match="a/0 overlaps"):
        REPEATED.assert_one_at_a_time()
    REPEATED.assert_one_at_a_time(stopped=["r"])


@pytest.mark.parametrize(("start", "finish"), [(1, 2), (5.5, 7)])
def test_keys_out_of_order_or_overlapping_fail(start: float, finish: float) -> None:
    handlings = [handled("a/9", "r", 5, 6), handled("a/10", "q", start, finish), handled("a/11", "q", 8, 9, "other")]
    with pytest.raises(AssertionError, match="key k out of order"):
        Verdict({"a/9", "a/10", "a/11"}, handlings).assert_keys_in_order()
