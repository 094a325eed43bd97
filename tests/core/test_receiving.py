"""Members of groups and taps are the same to `rvq.Receiver`."""

from __future__ import annotations

from random import Random

import pytest

from rvq.core.receiver import ReceiverMachine
from rvq.core.receiving import ReceivingMachine
from rvq.core.tap import TapMachine
from rvq.timings import Timings

MACHINES: list[ReceivingMachine] = [
    ReceiverMachine("work", 1, group="g", weight=1, timings=Timings(), random=Random(1), now=0.0),
    TapMachine("work", 1, timings=Timings(), random=Random(1), now=0.0),
]


def asked_for() -> set[str]:
    return {
        name
        for kind in ReceivingMachine.__mro__
        for name in {*vars(kind), *getattr(kind, "__annotations__", ())}
        if not name.startswith("_")
    }


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
def test_a_machine_has_everything_that_a_receiver_asks_for(machine: ReceivingMachine) -> None:
    assert {"take", "receive", "stats", "left"} <= asked_for()
    assert not [name for name in asked_for() if not hasattr(machine, name)]
