"""A whole examination on loopback, plain and sealed, and the search for the size that passes."""

from __future__ import annotations

import time

import pytest

from rvq.aio.checkup import meeting
from rvq.aio.checkup.examination import MANY, between, examine, examine_self, find_size
from rvq.aio.checkup.meeting import open_meeting
from rvq.aio.checkup.post import Way
from rvq.bus import Bus
from rvq.keyfile import Keys, new_key
from rvq.transport.multicast import resolve_interface
from tests.aio.checkup.test_probing import pair

LO = resolve_interface("lo")


@pytest.mark.parametrize("keys", [None, Keys([new_key()])], ids=["plain", "sealed"])
async def test_a_host_that_is_well_loses_nothing_of_its_own(bus: Bus, keys: Keys | None) -> None:
    examined = await examine_self(bus, LO, keys, 60_000)
    assert examined.fits == examined.wanted == 60_000
    assert examined.loss is not None
    assert (examined.loss.sent, examined.loss.heard, examined.loss.echoed) == (MANY, MANY, MANY)
    assert not examined.is_clock_off


@pytest.mark.parametrize(("ahead", "is_off"), [(3.0, True), (-3.0, True), (0.1, False)])
async def test_a_clock_that_is_off_is_measured_between_two(
    bus: Bus, ahead: float, is_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meeting, "MORE_S", 0.1)
    with (
        open_meeting(bus, LO, None) as one,
        open_meeting(bus, LO, None, asks=False, wall=lambda: time.time() + ahead),
    ):
        (peer,) = await one.find(20)
        examined = await examine(one, peer, 1472)
    assert examined.clock is not None and examined.is_clock_off == is_off
    assert abs(examined.clock.ahead_s - ahead) <= examined.clock.round_trip_s / 2 + 0.01


@pytest.mark.parametrize("passes", [300, 1372, 1471, 1472])
async def test_the_size_that_passes_is_found_to_the_byte(passes: int) -> None:
    asking = pair(there=lambda word, way, size: size > passes)
    assert await find_size(asking, Way.MULTICAST, 1472) == passes


async def test_the_narrower_direction_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = pair(back=lambda word, way, size: size > 8000)
    assert await find_size(asking, Way.MULTICAST, 8972) == 8000


def test_sizes_between_two_close_in_on_what_is_open() -> None:
    assert between(100, 101) == [] and between(100, 102) == [101]
    sizes = between(223, 1472)
    assert len(sizes) == 15 and sizes == sorted(set(sizes)) and sizes[0] > 223 and sizes[-1] < 1472
