"""The protocol's durations and the relations between them."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from rvq.errors import BusError
from rvq.timings import CLOCK_RATE_ERROR, Timings

NAMES = [field.name for field in fields(Timings)]


def test_defaults_are_those_of_the_design() -> None:
    timings = Timings()
    assert (timings.heartbeat, timings.expiry, timings.lease) == (0.2, 1.0, 1.0)
    assert (timings.settle, timings.orphan_for, timings.report) == (0.05, 5.0, 0.02)


def test_timings_cannot_be_changed_while_in_use() -> None:
    with pytest.raises(FrozenInstanceError):
        Timings().lease = 2.0  # type: ignore[misc]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, 3600, "1", None, True])
def test_what_is_not_a_duration_is_refused(name: str, value: Any) -> None:
    with pytest.raises(BusError, match=f"{name}=.* is not a duration: give seconds"):
        Timings(**{name: value})


@pytest.mark.parametrize("name", ["expiry", "lease"])
def test_one_lost_frame_must_not_expel_or_stop_anyone(name: str) -> None:
    Timings(**{name: 0.6})
    with pytest.raises(BusError, match=f"{name}=0.59 is too short: it must be at least 0.6 "):
        Timings(**{name: 0.59})


def test_an_orphaned_stream_has_time_to_be_finished() -> None:
    Timings(orphan_for=2.0)
    with pytest.raises(BusError, match=r"orphan_for=1\.9 is too short: it must be at least 2 "):
        Timings(orphan_for=1.9)


def test_heirs_wait_longer_than_any_lease_by_any_clock() -> None:
    timings = Timings(lease=2.0)
    assert timings.heir_wait == pytest.approx(2.0 * (1 + CLOCK_RATE_ERROR))
    assert timings.orphan_wait == pytest.approx(5.0 * (1 + CLOCK_RATE_ERROR))


def test_derived_durations_follow_their_settings() -> None:
    timings = Timings(heartbeat=0.1, settle=0.02)
    assert timings.first_table == pytest.approx(0.3)
    assert timings.flow_silence == pytest.approx(0.2)
    assert timings.settle_max == pytest.approx(0.4)
    assert timings.flow_silence < timings.expiry, "flow forgets the silent before the table does"


def test_a_silent_sender_is_noticed_by_all_before_a_lease_is_over() -> None:
    timings = Timings()
    assert 2 * timings.heartbeat < timings.orphan_after
    assert timings.orphan_after + timings.heartbeat < timings.lease
