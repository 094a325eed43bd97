"""kill -9 of one of four receivers: when the others get its new messages, when its old ones, and what is repeated."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from bench.figures import Figure
from bench.group.fleet import Fleet, Handling, judge

RECEIVERS, RATE, WORK_S = 4, 2000, 0.0005
RUNS = 4
BEFORE_S, AFTER_S = 2.0, 4.0

LATE_S = 0.3
"""A message that took longer was sent to the dead and waited for an heir. Others take a few milliseconds."""

UNREPORTED_S = 0.025
"""A receiver reports its progress 20 ms after it at the latest, and may wait for its turn on a busy core: what it did
since may be done again."""


class Death(NamedTuple):
    """What one of them cost. Times are from the kill."""

    flows_after: float
    taken_over_after: float
    repeats: int
    handled_lately: int
    unexplained: int
    oldest_repeat: float
    lost: int
    invented: int


def run(quick: bool) -> Iterator[Figure]:
    deaths = [_kill_one() for _ in range(1 if quick else RUNS)]
    yield Figure("runs", len(deaths))
    yield Figure("lost or invented", sum(death.lost + death.invented for death in deaths), most=0)
    yield Figure("new messages flow to the others after (worst)", max(d.flows_after for d in deaths), "s", most=1.5)
    yield Figure("unfinished ones are taken over after (worst)", max(d.taken_over_after for d in deaths), "s", most=3)
    yield Figure("messages handled twice (worst)", max(death.repeats for death in deaths))
    yield Figure("handled by the dead in its last 25 ms (worst)", max(death.handled_lately for death in deaths))
    yield Figure("handled how long before the kill, if twice (worst)", max(d.oldest_repeat for d in deaths) * 1e3, "ms")
    yield Figure("handled twice, and not in the last 25 ms", sum(death.unexplained for death in deaths), most=0)


def _kill_one() -> Death:
    count = int(RATE * (BEFORE_S + AFTER_S))
    with Fleet() as fleet:
        victim, *_ = fleet.start_receivers(RECEIVERS, "--times", work=WORK_S)
        began = fleet.sender(count, rate=RATE).when("begin").at
        time.sleep(max(0.0, began + BEFORE_S - time.monotonic()))
        died_at = victim.kill()
        fleet.await_senders()
        fleet.release()
        of_dead, *others = [worker.handlings() for worker in fleet.receivers]
    return _judge_death(count, died_at, of_dead, [handling for each in others for handling in each])


def _judge_death(count: int, died_at: float, of_dead: list[Handling], others: list[Handling]) -> Death:
    verdict = judge([count], [[h.number for h in of_dead], [h.number for h in others]])
    late = [h for h in others if h.at - h.sent > LATE_S and h.at > died_at]
    times = Counter(handling.number for handling in (*of_dead, *others))
    by_dead = {handling.number: died_at - handling.at for handling in of_dead}
    ages = [by_dead.get(number, float("inf")) for number, count in times.items() if count > 1]
    return Death(
        flows_after=max((h.sent for h in late), default=died_at) - died_at,
        taken_over_after=max((h.at for h in late), default=died_at) - died_at,
        repeats=len(ages),
        handled_lately=sum(age <= UNREPORTED_S + WORK_S for age in by_dead.values()),
        unexplained=sum(age > UNREPORTED_S + WORK_S for age in ages),
        oldest_repeat=max(ages, default=0.0),
        lost=verdict.lost,
        invented=verdict.invented,
    )
