"""Who keeps a journal: heard, silent, gone, and never more of them than there may be."""

from __future__ import annotations

from rvq.core.recorders import Recorders
from rvq.limits import RECORDERS_MAX


def test_one_that_is_heard_is_told_until_it_is_silent() -> None:
    recorders = Recorders(1.0)
    assert not recorders
    recorders.hear(0.0, 7, "there")
    recorders.hear(0.5, 7, "there")
    recorders.expire(1.4)
    assert recorders.addresses == ["there"]
    recorders.expire(1.5)
    assert not recorders


def test_one_that_says_goodbye_is_told_no_more() -> None:
    recorders = Recorders(1.0)
    recorders.hear(0.0, 7, "there")
    recorders.forget(7, "there")
    recorders.forget(8, "there")
    assert not recorders


def test_nobody_was_silent_while_i_slept() -> None:
    recorders = Recorders(1.0)
    recorders.hear(0.0, 7, "there")
    recorders.forgive(5.0)
    recorders.expire(5.9)
    assert len(recorders) == 1


def test_there_are_never_more_than_there_may_be() -> None:
    recorders = Recorders(1.0)
    for id in range(RECORDERS_MAX + 5):
        recorders.hear(0.0, id, id)
        recorders.check_invariants()
    assert len(recorders) == RECORDERS_MAX
    recorders.hear(0.5, 3, 3)
    recorders.expire(1.0)
    assert recorders.addresses == [3]
