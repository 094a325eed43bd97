"""What a journal costs: the same run with a recorder and without, in turns."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bench.figures import Figure
from bench.group.fleet import Fleet, Trouble, judge
from rvq.journal import verify

RECEIVERS, ROUNDS = 3, 3
SHAPES = ((100, 1_500_000), (1000, 300_000))
"""Bytes of each message, and how many."""
COST_PERCENT_MAX = 25


def run(quick: bool) -> Iterator[Figure]:
    for size, usual in SHAPES:
        count = usual // 20 if quick else usual
        rates: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(1 if quick else ROUNDS):
            for recorded in (False, True):
                rates[recorded].append(_rate(count, size, recorded))
        without, with_it = median(rates[False]), median(rates[True])
        cost = median(100 * (1 - b / a) for a, b in zip(rates[False], rates[True], strict=True))
        yield Figure(f"{size} bytes: rate without a recorder", without, "messages/s")
        yield Figure(f"{size} bytes: rate with one", with_it, "messages/s")
        yield Figure(f"{size} bytes: to disk", with_it * size / 1e6, "MB/s")
        yield Figure(f"{size} bytes: cost", cost, "%", most=COST_PERCENT_MAX)


def _rate(count: int, size: int, recorded: bool) -> float:
    """Everything was handled once, and all of it is in the journal; else Trouble."""
    with Fleet() as fleet:
        fleet.start_receivers(RECEIVERS)
        recorders = [fleet.start_recorder()] if recorded else []
        fleet.sender(count, size=size)
        seconds = fleet.await_senders()
        fleet.release()
        verdict = judge([count], (worker.numbers() for worker in fleet.receivers))
        for recorder in recorders:
            checked = verify(recorder.log)
            if not checked.is_good or checked.rows != count:
                raise Trouble(f"{checked.rows} of {count} messages are in the journal: {checked.findings}")
    if not verdict.clean:
        raise Trouble(f"not everything was handled once: {verdict}")
    return count / seconds
