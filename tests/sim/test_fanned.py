"""Worlds without multicast: that nothing goes to all at once, that everyone finds everyone, and that it can fail."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from rvq.core.fanout import FanoutMachine
from rvq.core.machine import Cut, Route
from rvq.sim import World
from rvq.sim.__main__ import replay_command, run_seeds
from rvq.sim.machines import FANNED, SEALED
from rvq.wire.frames import PeerAddress

SEEDS = range(8)
"""`python -m rvq.sim --fanout` runs more."""


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_random_worlds_without_multicast_keep_every_promise(sealed: bool) -> None:
    verdicts = run_seeds(SEEDS if not sealed else SEEDS[:2], None, sealed, True)
    again = [replay_command(verdict.seed, sealed=sealed, fanout=True) for verdict in verdicts if not verdict.ok]
    assert not again, "\n".join(again)
    assert sum(verdict.submitted for verdict in verdicts) > 100


def a_world(build: object = FANNED) -> World:
    world = World(1, build=build)  # type: ignore[arg-type]
    for _ in range(4):
        world.receiver("work")
    world.sender("work", messages=100)
    return world


def test_nothing_goes_to_a_multicast_address() -> None:
    world = a_world()
    sent: list[object] = []
    send = world.network.send
    world.network.send = lambda source, out: (sent.extend(target for target, _ in out), send(source, out))[1]  # type: ignore[method-assign]
    world.run()
    world.verdict().raise_if_bad()
    assert sent and not [target for target in sent if isinstance(target, Route | Cut)]


@pytest.mark.parametrize("build", [FANNED, replace(SEALED, fanout=FanoutMachine)], ids=["plain", "sealed"])
def test_all_know_all_within_a_second_although_each_was_told_of_two(build: object) -> None:
    world = a_world(build)
    world.run(until=1.0)
    names = {process.name for process in world.processes}
    for process in world.processes:
        assert process.fanned is not None
        assert set(process.fanned.machine.peers) == names - {process.name}


def test_observers_see_who_is_there() -> None:
    world = a_world()
    observer = world.observer()
    world.run(until=5.0)
    (label,) = observer.snapshot()["labels"]
    assert len(label["groups"][0]["receivers"]) == 4 and len(label["senders"]) == 1


class Silent(FanoutMachine):
    """Tells nobody of others."""

    def _ask_about(self, now: float, told: Iterable[PeerAddress]) -> None: ...


def test_a_machine_that_does_not_listen_to_what_it_is_told_of_others_finds_only_seeds() -> None:
    world = a_world(replace(FANNED, fanout=Silent))
    world.run(until=1.0)
    last = world.processes[-1]
    assert last.fanned is not None and len(last.fanned.machine.peers) < 4
