"""What a world needs of machines, and that the product has it."""

from __future__ import annotations

from random import Random
from typing import Any

from rvq.core.receiver import ReceiverMachine
from rvq.core.sender import SenderMachine
from rvq.sim import World
from rvq.sim.machines import PRODUCT, Build
from rvq.timings import Timings


def members_of(protocol: type) -> set[str]:
    return {name for kind in protocol.__mro__ for name in vars(kind) if not name.startswith("_")}


def test_the_product_has_everything_that_a_world_asks_for() -> None:
    from rvq.sim.machines import ReceivingEnd, SendingEnd

    common: dict[str, Any] = {"timings": Timings(), "random": Random(0), "now": 0.0, "wall_offset": 0.0}
    sender = PRODUCT.sender("work", 1, **common)
    receiver = PRODUCT.receiver("work", 2, group="default", weight=1, **common)
    assert not [name for name in members_of(SendingEnd) if not hasattr(sender, name)]
    assert not [name for name in members_of(ReceivingEnd) if not hasattr(receiver, name)]


def test_a_world_runs_the_product_unless_told_otherwise() -> None:
    world = World(1)
    assert type(world.sender("work").machine) is SenderMachine
    assert type(world.receiver("work").machine) is ReceiverMachine


def test_a_world_runs_the_machines_that_it_is_given() -> None:
    class Mine(ReceiverMachine):
        pass

    world = World(1, build=Build(receiver=Mine))
    assert type(world.receiver("work").machine) is Mine
    assert type(world.sender("work").machine) is SenderMachine
