"""Seeds that once found a bug, and what it was."""

from __future__ import annotations

import pytest

from rvq.sim.workloads import run_seed

PINNED: dict[int, str] = {
    325: "no tail probe was armed while the window was full and all that was sent was done: a stream stood still",
}


@pytest.mark.parametrize("seed", PINNED, ids=str)
def test_what_was_found_once_stays_mended(seed: int) -> None:
    verdict = run_seed(seed)
    assert verdict.ok, f"{PINNED[seed]}\n{verdict}"
