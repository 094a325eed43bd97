"""The bench `single`: one message at a time through the machines."""

from __future__ import annotations

import pytest

from bench.group.fleet import Trouble
from bench.micro import single
from bench.micro.single import RECEIVERS, Line


def test_each_receiver_handles_its_third_of_what_was_sent() -> None:
    handled = []
    for number in range(RECEIVERS):
        line = Line().store(30)
        line.receivers[0], line.receivers[number] = line.receivers[number], line.receivers[0]
        for _ in range(30 // RECEIVERS):
            line.hear()
        assert not line.frames
        handled.append(line.receivers[0].stats.acked)
    assert handled == [10] * RECEIVERS


def test_every_message_is_a_frame_of_its_own() -> None:
    line = Line().store(single.RECEIVERS * single.CALLS)
    assert len(line.frames) == line.sender.stats.routed == RECEIVERS * single.CALLS


def test_receivers_that_do_not_gather_are_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single, "GATHERED_S_MAX", 0.1)
    with pytest.raises(Trouble, match="did not gather"):
        Line()


def test_both_sides_are_measured() -> None:
    assert [figure.unit for figure in single.run(quick=True)] == ["us", "us"]
