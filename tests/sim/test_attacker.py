"""The attacker: that he hears, repeats and forges, and that a plain bus is no match for him."""

from __future__ import annotations

from rvq.sim import World
from rvq.sim.attacker import HEARD_MAX, OLDEST
from rvq.sim.machines import SEALED


def attacked(sealed: bool, seed: int = 1) -> tuple[World, int]:
    world = World(seed, build=SEALED if sealed else None)
    for _ in range(3):
        world.receiver("work")
    world.sender("work", messages=150, rate=50.0)
    attacker = world.attacker("work")
    world.run(until=10.0)
    assert len(attacker.heard) <= HEARD_MAX and OLDEST < HEARD_MAX
    return world, attacker.said


def test_on_a_sealed_bus_all_his_tricks_are_tried_and_nothing_comes_of_them() -> None:
    world, said = attacked(sealed=True)
    assert world.verdict().ok and said > 1000
    counts = list(world.accounts.values())
    assert all(stats.replayed > 20 and stats.bad_frames > 20 and stats.strangers > 20 for stats in counts)


def test_on_a_plain_bus_he_is_a_member_who_never_handles_anything() -> None:
    world, _ = attacked(sealed=False)
    ids = {receiver.id for receiver in world.receivers}
    members = {member.id for at, stamp in world.senders[0].stamps for entry in stamp.groups for member in entry.members}
    peers = {id for receiver in world.live_receivers() for id in receiver.machine.membership.peers}  # type: ignore[attr-defined]
    assert (members | peers) - ids, "somebody took him in"


def test_what_he_says_follows_from_the_seed() -> None:
    first, said = attacked(sealed=True, seed=5)
    again, said_again = attacked(sealed=True, seed=5)
    assert said == said_again and first.history.digest() == again.history.digest()
