"""A crowd in the simulator: what each hears is counted as it would be on a wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bench.group.fleet import Trouble
from bench.peers import crowd
from bench.peers.crowd import HEADERS_BYTES, Ear
from rvq.core.machine import Datagram, Route
from rvq.sim import World


@pytest.fixture
def world() -> World:
    world = World(seed=1)
    world.sender("work", messages=100_000, rate=50)
    for _ in range(3):
        world.receiver("work")
    return world


def say(world: World, source: str, *outgoing: Datagram) -> int:
    ear = Ear(world)
    world.network.send(source, list(outgoing))
    return ear.bytes


def test_control_is_counted_once_for_everyone_who_hears_it(world: World) -> None:
    receiver, sender = world.receivers[0].name, world.senders[0].name
    assert say(world, receiver, (Route.CONTROL, bytes(40))) == 2 * (40 + HEADERS_BYTES)
    assert say(world, sender, (Route.CONTROL, bytes(40))) == 3 * (40 + HEADERS_BYTES)


def test_what_is_said_to_one_is_counted_if_it_is_a_receiver(world: World) -> None:
    receiver, other, sender = world.receivers[0].name, world.receivers[1].name, world.senders[0].name
    assert say(world, receiver, (other, bytes(40))) == 40 + HEADERS_BYTES
    assert say(world, receiver, (sender, bytes(40))) == 0


def test_data_is_not_control(world: World) -> None:
    assert say(world, world.senders[0].name, (Route.DATA, bytes(40))) == 0


def plainly(members: int) -> float:
    """The same count without any of the crowd's shortcuts: datagrams travel one by one, and everyone decodes each."""
    world = World(seed=1)
    world.sender("work", messages=100_000, rate=50)
    for _ in range(members):
        world.receiver("work")
    names, carry, heard = {receiver.name for receiver in world.receivers}, world.network.send, 0

    def send(source: str, outgoing: list[Datagram]) -> None:
        nonlocal heard
        for target, datagram in outgoing:
            hearers = len(names - {source}) if target is Route.CONTROL else int(target in names)
            heard += hearers * (len(datagram) + HEADERS_BYTES)
        carry(source, outgoing)

    world.network.send = send  # type: ignore[method-assign]
    world.run(until=5.0)
    before = heard
    world.run(until=7.0)
    return (heard - before) / members / 2


def test_the_shortcuts_of_the_crowd_change_little_of_what_is_said() -> None:
    assert crowd.control_bytes_per_s(20) == pytest.approx(plainly(20), rel=0.1)


def test_control_grows_no_faster_than_the_members() -> None:
    few, many = crowd.control_bytes_per_s(10), crowd.control_bytes_per_s(40)
    assert 2 < many / few < 4 * 1.15


def test_a_crowd_that_does_not_gather_is_trouble(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "GATHERED_S_MAX", 1.0)
    with pytest.raises(Trouble, match="of 4 receivers are in after"):
        crowd._gather(world, 4)


def test_the_machines_get_their_own_decoder_back(monkeypatch: pytest.MonkeyPatch) -> None:
    import rvq.core.receiver as machine

    decoder: Callable[..., Any] = machine.decode_control
    with crowd._shared():
        assert machine.decode_control is not decoder
    assert machine.decode_control is decoder
