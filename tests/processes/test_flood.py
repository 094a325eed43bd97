"""Real processes while a stranger floods their bus, as fast as this machine can: nothing is lost, nobody raises, and
nobody grows. `make flood` does it for longer, and each kind alone.
"""

from __future__ import annotations

from rvq.limits import STRANGER_BYTES_MAX
from tests.processes.flooding import measure
from tests.processes.harness import Fleet

SECONDS = "3"


def test_a_flood_of_all_kinds_loses_nothing_and_takes_little_memory(fleet: Fleet, port: int) -> None:
    seen = measure(fleet, port, "", float(SECONDS), settle=0.5)
    assert int(seen.said.split()[0]) > 1000, seen.said
    assert max(seen.grown.values()) < STRANGER_BYTES_MAX
    assert seen.during > 0 and seen.after > 0
