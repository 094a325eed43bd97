"""SIGSTOP for ten seconds: after SIGCONT a receiver starts nothing that is no longer its own."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

from bench.figures import Figure
from bench.group.fleet import Fleet, judge

RECEIVERS, RATE, WORK_S = 4, 2000, 0.0005
STOPPED_S, BEFORE_S, AFTER_S = 10.0, 2.0, 5.0
IN_HAND = 1
"""The message that it was at when it was stopped may be another's when it goes on."""


def run(quick: bool) -> Iterator[Figure]:
    stopped_s = 3.0 if quick else STOPPED_S
    count = int(RATE * (BEFORE_S + stopped_s + AFTER_S))
    with Fleet() as fleet:
        victim, *_ = fleet.start_receivers(RECEIVERS, "--times", work=WORK_S)
        began = fleet.sender(count, rate=RATE).when("begin").at
        time.sleep(max(0.0, began + BEFORE_S - time.monotonic()))
        victim.signal(signal.SIGSTOP)
        time.sleep(stopped_s)
        resumed_at = time.monotonic()
        victim.signal(signal.SIGCONT)
        fleet.await_senders()
        fleet.release()
        of_victim, *others = [worker.handlings() for worker in fleet.receivers]
    verdict = judge([count], ([h.number for h in each] for each in (of_victim, *others)))
    elsewhere = {handling.number for each in others for handling in each}
    after = [handling for handling in of_victim if handling.at >= resumed_at]
    yield Figure("stopped for", stopped_s, "s")
    yield Figure("lost or invented", verdict.lost + verdict.invented, most=0)
    yield Figure("started after SIGCONT", len(after))
    yield Figure("of these, no longer its own", sum(h.number in elsewhere for h in after), most=0)
    yield Figure("handled twice in all (in its hands when it was stopped)", verdict.repeated)
    fresh = [handling.at for handling in after if handling.sent > resumed_at]
    yield Figure("new messages after SIGCONT after", min(fresh, default=float("inf")) - resumed_at, "s")
