"""What is done, as runs: in order, out of order, and as a sender merges the reports of its receivers."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from bench.figures import Figure
from bench.micro.clock import ns_per_call
from rvq.core.progress import GroupDone
from rvq.core.runs import DoneRuns
from rvq.wire.frames import LaneProgress, Member

COUNT = 1000


def run(quick: bool) -> Iterator[Figure]:
    in_order = list(range(1, COUNT + 1))
    shuffled = shuffled_numbers()
    plain = ns_per_call(lambda: set(shuffled), quick) / COUNT
    yield Figure("a set of numbers, for comparison", plain, "ns/message")
    yield Figure("done in order", ns_per_call(lambda: _merge(in_order), quick) / COUNT, "ns/message")
    yield Figure("done in any order", ns_per_call(lambda: _merge(shuffled), quick) / COUNT, "ns/message")
    for receivers in (5, 100):
        cost = ns_per_call(lambda receivers=receivers: _reports(receivers), quick) / 1e3 / (10 * receivers)
        yield Figure(f"a sender takes a report, of {receivers} receivers", cost, "us")


def shuffled_numbers() -> list[int]:
    return Random(1).sample(range(1, COUNT + 1), COUNT)


def _merge(sequences: list[int]) -> None:
    done = DoneRuns(0)
    for sequence in sequences:
        done.merge(0, (sequence, sequence))
    assert done.floor == COUNT


def _reports(receivers: int) -> None:
    """Ten of each."""
    done = GroupDone(1)
    done.switch(1, 1, False, tuple(Member(number, 1) for number in range(1, receivers + 1)))
    for floor in range(1000, 11_000, 1000):
        for slot in range(receivers):
            done.merge(LaneProgress(1, slot, floor, ()), 20_000)
