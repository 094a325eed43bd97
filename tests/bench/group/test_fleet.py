"""The verdict on a group of processes, and what is known of one that has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.group.fleet import Trouble, Verdict, Worker, judge, percentile
from bench.group.worker import SENDER_SHIFT


@pytest.mark.parametrize(
    ("handled", "verdict"),
    [
        ([[0, 1], [2, 1 << SENDER_SHIFT]], Verdict(4, 0, 0, 0)),
        ([[0, 1], [2]], Verdict(4, 1, 0, 0)),
        ([[0, 1, 1], [2, 0, 1 << SENDER_SHIFT]], Verdict(4, 0, 2, 0)),
        ([[0, 1, 3], [2, 1 << SENDER_SHIFT, 2 << SENDER_SHIFT]], Verdict(4, 0, 0, 2)),
    ],
    ids=["once", "lost", "repeated", "invented"],
)
def test_the_verdict_says_what_became_of_the_messages(handled: list[list[int]], verdict: Verdict) -> None:
    assert judge([3, 1], handled) == verdict
    assert verdict.clean == (verdict == Verdict(4, 0, 0, 0))


def test_a_percentile_of_nothing_is_trouble() -> None:
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0
    with pytest.raises(Trouble, match="nothing was measured"):
        percentile([], 99)


def test_one_that_ended_without_a_word_has_no_memory_to_tell_of(tmp_path: Path) -> None:
    worker = Worker("broken", ["there-is-no-such-role"], tmp_path)
    try:
        worker.process.wait(20)
        with pytest.raises(Trouble, match="broken did not say 'stats'"):
            _ = worker.rss_bytes
    finally:
        worker.end()
