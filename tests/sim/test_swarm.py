"""Random worlds, enough of them to find what nobody thought of. `make simulate SEEDS=20000` runs more."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from rvq.sim.__main__ import replay_command, run_seeds
from rvq.sim.checkers import Verdict

CHUNK = 20
CHUNKS = [range(first, first + CHUNK) for first in range(0, 520, CHUNK)]
SEALED_CHUNKS = CHUNKS[:4]
"""They take twice as long: every frame is sealed, and an attacker says as much as all others together."""
WORKERS = 2
pytestmark = pytest.mark.xdist_group("swarm")
"""Run side by side with others, all in one worker: each that had one of them would run them all."""


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[range, Future[list[Verdict]]]]:
    """All chunks are handed out at once, so that both cores are busy whichever test waits."""
    # A fresh interpreter per worker: forking one with threads of other tests in it can lock up.
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        yield {chunk: pool.submit(run_seeds, chunk, None) for chunk in CHUNKS}
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def sealed_runs() -> Iterator[dict[range, Future[list[Verdict]]]]:
    """The same on a sealed bus."""
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        yield {chunk: pool.submit(run_seeds, chunk, None, True) for chunk in SEALED_CHUNKS}
        pool.shutdown(cancel_futures=True)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("chunk", CHUNKS, ids=lambda chunk: f"{chunk[0]}-{chunk[-1]}")
def test_random_worlds_keep_every_promise(chunk: range, runs: dict[range, Future[list[Verdict]]]) -> None:
    verdicts = runs[chunk].result()
    assert [verdict.seed for verdict in verdicts] == list(chunk)
    bad = [f"{verdict}\nreplay: {replay_command(verdict.seed)}" for verdict in verdicts if not verdict.ok]
    assert not bad, "\n".join(bad)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("chunk", SEALED_CHUNKS, ids=lambda chunk: f"{chunk[0]}-{chunk[-1]}")
def test_an_attacker_breaks_no_promise_of_a_sealed_bus(
    chunk: range, sealed_runs: dict[range, Future[list[Verdict]]]
) -> None:
    verdicts = sealed_runs[chunk].result()
    bad = [f"{verdict}\nreplay: {replay_command(verdict.seed, sealed=True)}" for verdict in verdicts if not verdict.ok]
    assert not bad, "\n".join(bad)


def test_there_are_five_hundred_of_them_and_they_did_something(runs: dict[range, Future[list[Verdict]]]) -> None:
    verdicts = [verdict for chunk in CHUNKS for verdict in runs[chunk].result()]
    assert len({verdict.seed for verdict in verdicts}) >= 500
    assert sum(verdict.submitted for verdict in verdicts) > 50_000
    assert sum(verdict.repeats for verdict in verdicts) > 100, "takeovers happen"
