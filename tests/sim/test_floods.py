"""What a stranger says: of every kind something, and most of it frames that can be read."""

from __future__ import annotations

from random import Random

import pytest

from rvq.core.machine import Route
from rvq.errors import WireError
from rvq.sim.floods import Floods
from rvq.wire.codec import UINT_MAX, decode_control, encode_control, read_data_header
from rvq.wire.frames import Alive, SenderAlive, Version, label_tag

KINDS = sorted(Floods("work", Random(1)).kinds)


def listening() -> Floods:
    floods = Floods("work", Random(1), most=10)
    alive = SenderAlive(7, "work", 5, False, 40, 0, 1, 2, (), ())
    floods.hear(encode_control(alive, label_tag("work")), "the sender")
    member = Alive(8, "work", "default", 1, 3, False, False, 0, Version(1, 8), (), ())
    floods.hear(encode_control(member, label_tag("work")), "a receiver")
    return floods


@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_to_the_bus_or_to_those_who_are_there_and_fits_a_datagram(kind: str) -> None:
    floods = listening()
    said = [floods.kinds[kind]() for _ in range(100)]
    assert all(isinstance(target, Route) or target in ("the sender", "a receiver") for target, _ in said)
    assert max(len(datagram) for _, datagram in said) <= 65_507


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"noise", "naks", "sequences", "fragments", "tables"}))
def test_it_is_well_formed(kind: str) -> None:
    floods = listening()
    for _ in range(50):
        decode_control(floods.kinds[kind]()[1])


def test_he_speaks_in_the_names_of_those_who_are_there_and_counts_far() -> None:
    floods = listening()
    frames = [decode_control(floods.kinds["impostors"]()[1]) for _ in range(100)]
    assert {7, 8} <= {frame.source for frame in frames}
    assert any(isinstance(frame, Alive) and frame.counter == UINT_MAX for frame in frames)
    streams = [read_data_header(floods.kinds["sequences"]()[1]).stream for _ in range(50)]
    assert 7 in streams


def test_what_is_no_frame_teaches_him_nothing() -> None:
    floods = Floods("work", Random(1))
    floods.hear(b"noise", "x")
    with pytest.raises(WireError):
        decode_control(b"noise")
