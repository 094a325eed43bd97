"""Seeds that once found a bug, and what it was."""

from __future__ import annotations

import pytest

from rvq.sim.workloads import run_seed

PINNED: dict[int, str] = {
    325: "no tail probe was armed while the window was full and all that was sent was done: a stream stood still",
    20302: "a lane came back shorter, for others had given parts of it away, and was handed over from beyond its end",
    40000789: "a former owner was heard again and had done what stood at a fence: its stamp was asked for no more, and "
    "what stood behind it waited for ever",
}


@pytest.mark.parametrize("seed", PINNED, ids=str)
def test_what_was_found_once_stays_mended(seed: int) -> None:
    verdict = run_seed(seed)
    assert verdict.ok, f"{PINNED[seed]}\n{verdict}"
