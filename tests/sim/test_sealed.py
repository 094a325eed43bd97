"""Sealed worlds: that they work, that they are re-keyed, and that the proof of what gets in can fail."""

from __future__ import annotations

from functools import partial

from rvq.core.machine import Route
from rvq.sim import Promise, World
from rvq.sim.machines import SEALED
from rvq.sim.mutants import build_named
from rvq.sim.sealed import BUS
from rvq.wire.frames import FrameType
from rvq.wire.keys import Keys
from rvq.wire.seal import Sealer, SealKind, is_sealed, read_header

LABEL = "work"


def a_world(mutant: str | None = None, receivers: int = 3, messages: int = 200, seed: int = 1) -> World:
    world = World(seed, build=build_named(mutant, sealed=True), verbose=1)
    for _ in range(receivers):
        world.receiver(LABEL)
    world.sender(LABEL, messages=messages, rate=100.0)
    return world


def sealed_promises(world: World) -> set[Promise]:
    return {violation.promise for violation in world.verdict().violations}


def test_on_a_sealed_bus_every_datagram_is_sealed_and_everything_is_done() -> None:
    world = a_world()
    heard: list[bytes] = []
    world.network.overhear = lambda _source, datagrams: heard.extend(datagrams)
    world.run()
    world.verdict().raise_if_bad()
    assert heard and all(map(is_sealed, heard))
    assert {world.network.kind_of(datagram) for datagram in heard} >= {FrameType.DATA, FrameType.ALIVE, FrameType.STAMP}


def test_everybody_meets_everybody_within_milliseconds() -> None:
    world = a_world(messages=0)
    kinds: list[SealKind] = []
    world.network.overhear = lambda _source, datagrams: kinds.extend(SealKind(read_header(d).kind) for d in datagrams)
    world.run(until=0.02)
    assert all(len(g._sealing._sealers.known) == 3 for g in world.bus.guarded)  # type: ignore[union-attr]
    assert kinds.count(SealKind.ANSWER) <= 4 * 6, "two for each pair, and two more if both ask at once"


def test_the_first_table_is_not_later_than_on_a_plain_bus() -> None:
    def first_stamp(build: str) -> float:
        world = World(3, build=SEALED if build == "sealed" else None)
        for _ in range(3):
            world.receiver(LABEL)
        sender = world.sender(LABEL, messages=50)
        world.run()
        return sender.stamps[0][0]

    assert first_stamp("sealed") < first_stamp("plain") + 0.05


def test_sealed_worlds_of_one_seed_are_the_same() -> None:
    digests = set()
    for _ in range(2):
        world = a_world()
        world.attacker(LABEL)
        world.run()
        digests.add(world.history.digest())
    assert len(digests) == 1


def test_a_bus_is_rekeyed_in_the_middle_of_everything_and_nothing_is_lost_or_asked_for() -> None:
    world = a_world(messages=400)
    bus = world.bus
    assert bus is not None
    old, new = bus.keys.in_use, bus.new_key()
    steps = (Keys([old, new]), Keys([old, new], new), Keys([new]))

    def give(place: int, keys: Keys) -> None:
        if place < len(bus.guarded):
            bus.guarded[place].use_keys(keys)

    for at, keys in zip((1.0, 2.0, 3.0), steps, strict=True):
        for place in range(6):
            world.at(at + 0.1 * place, partial(give, place, keys))
        world.at(at + 0.7, partial(bus.use_keys, keys))
    world.at(2.35, lambda: world.receiver(LABEL))
    world.at(3.95, lambda: world.receiver(LABEL))
    world.run()
    world.verdict().raise_if_bad()
    assert all(stats.strangers == 0 for stats in world.accounts.values())
    assert all(sender.machine.stats.repaired == 0 for sender in world.senders)


def test_one_who_was_not_given_the_new_key_is_out() -> None:
    world = a_world()
    assert world.bus is not None
    new = world.bus.new_key()
    late = world.receivers[0]
    for guarded in world.bus.guarded:
        if guarded is not late.guarded:
            world.at(1.0, lambda guarded=guarded: guarded.use_keys(Keys([new])))
    world.run(until=8.0)
    assert late.machine.stats.strangers
    assert world.senders[0].finished, "the others have done its work"


# --- the proof can fail -------------------------------------------------------------------------------------------


def test_what_nobody_sealed_is_found_out() -> None:
    world = a_world()
    bus = world.bus
    assert bus is not None
    world.run(until=1.0)
    # A thief has the key: for the seal he is one of us, and for the proof he is not.
    thief = Sealer(bus.keys.in_use, b"t" * 16, BUS)
    inside = world.receivers[0].guarded
    assert inside is not None
    inside._sealing._open = lambda _now, datagram, _source: b"anything"  # type: ignore[method-assign]
    inside.receive(1.0, thief.seal(1, b"frame"), "r2")
    assert Promise.SEALED in sealed_promises(world)


def revived(mutant: str | None) -> set[str]:
    """One dies; its last words are said again to one who comes later. The members that the newcomer then sees."""
    world = a_world(mutant, messages=600)
    dead = world.receivers[0]
    attacker = world.attacker(LABEL)
    world.network.overhear = attacker._hear
    attacker._act = lambda: None  # type: ignore[method-assign]
    world.run(until=2.0)
    dead.crash()
    world.run(until=4.5)
    late = world.receiver(LABEL)
    seen: set[str] = set()
    names = {process.id: process.name for process in world.receivers}
    for step in range(60):
        if step % 3 == 0:
            attacker.repeat_all_of(dead.name, late.name)
        world.run(until=world.now + 0.05)
        peers = late.machine.membership.peers  # type: ignore[attr-defined]
        seen |= {names[id] for id in peers if id in names}
    return seen - {late.name}


def test_old_heartbeats_bring_back_nobody_for_one_who_comes_later() -> None:
    assert revived(None) == {"r2", "r3"}


def test_without_the_challenge_they_do() -> None:
    assert revived("no-challenge") == {"r1", "r2", "r3"}


def test_the_route_of_a_frame_is_its_channel() -> None:
    world = a_world(messages=20)
    channels = set()
    world.network.overhear = lambda _s, datagrams: channels.update(read_header(d).channel for d in datagrams)
    world.run()
    assert channels == {1, 2, 3, 4}, "unicast, and one for each route"
    assert len(channels) == 1 + len(Route)
