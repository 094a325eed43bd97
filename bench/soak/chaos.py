"""Carries a schedule out on a crew. Owns when each fault really began and ended, and what was measured meanwhile; what
is right and wrong is the judge's affair."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from bench.soak.crew import Crew, Member
from bench.soak.schedule import EVERYWHERE, RIGHT, SENDERS, Fault, Kind

LOOK_S = 0.02
SAMPLE_S = 1.0
"""Between two looks at everyone's memory."""
QUIET_S = 2.0
"""After the last fault, before senders are told to end."""
END_S = 150.0
"""For everything to be done after the last fault: longer than a sender lingers."""
AGAIN_S = 0.3
"""Before one that is asked to leave and has not left yet is looked at again."""

STEP_S = 1.0
"""Between two steps of a new key: twice as long as between two looks at the file."""
REKEY_S_MAX = 40.0
"""For all to take a step: longer than anybody is stopped."""


@dataclass
class Span:
    """A fault as it really was."""

    kind: Kind
    host: str
    since: float
    to: float
    amount: float = 0.0
    process: str = ""
    """Whose, if it befell one."""

    def cuts(self, one: str, other: str) -> bool:
        """Do frames between these hosts suffer from it?"""
        if self.kind is Kind.SPLIT:
            return (one in RIGHT) != (other in RIGHT)
        return self.kind in (Kind.PULL, Kind.DEAF, Kind.MUTE, Kind.LOSS) and self.host in (one, other)


class Sample(NamedTuple):
    """What a process had in memory."""

    at: float
    host: str
    rss_bytes: int


class Chaos:
    """One soak."""

    def __init__(self, crew: Crew, faults: Iterable[Fault], tell: Callable[[str], None]) -> None:
        self.spans: list[Span] = []
        self.samples: list[Sample] = []
        self.troubles: list[str] = []
        """What no fault explains: a process that failed or did not end."""
        self.began_at = 0.0
        self._crew, self._faults, self._tell = crew, list(faults), tell
        self._acts: dict[Kind, Callable[[Fault], None]] = {
            Kind.KILL: self._kill,
            Kind.LEAVE: self._leave,
            Kind.STOP: self._stop,
            Kind.PULL: self._pull,
            Kind.DEAF: self._deaf,
            Kind.MUTE: self._mute,
            Kind.LOSS: self._loss,
            Kind.SPLIT: self._split,
            Kind.STEP: self._step,
            Kind.SLOW: self._slow,
            Kind.REKEY: self._rekey,
        }
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._ties = itertools.count()
        self._sample_at = 0.0
        self._is_rekeying = self._is_over = False

    # --- the course of it -----------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Until the last fault is over, everything is done, and all have left."""
        self.began_at = time.monotonic()
        for fault in self._faults:
            self._at(self.began_at + fault.at, partial(self._begin, fault))
        self._at(self.began_at + seconds, self._finish)
        while self._agenda or self._is_rekeying:
            self._turn()
        self._wind_up()

    def _finish(self) -> None:
        """Who still leaves is waited for with all others: it may need the senders to be done."""
        self._is_over = True

    def _turn(self) -> None:
        now = time.monotonic()
        while self._agenda and self._agenda[0][0] <= now:
            heapq.heappop(self._agenda)[2]()
        self._look_after()
        time.sleep(LOOK_S)

    def _at(self, at: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (at, next(self._ties), action))

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        self._at(time.monotonic() + seconds, action)

    def _wind_up(self) -> None:
        """Senders finish, then the others leave."""
        self._await(time.monotonic() + QUIET_S, lambda: False)
        for who, what in ((True, "was not done with its messages"), (False, "did not leave")):
            members = [member for host, member in self._crew.running.items() if (host in SENDERS) is who]
            self._await(time.monotonic() + END_S, lambda members=members: all(member.has_opened for member in members))
            for member in members:
                member.terminate()
            self._tell(f"{len(members)} {'senders finish' if who else 'receivers and recorders leave'}")
            self._await(time.monotonic() + END_S, partial(_all_have_ended, members))
            for member in members:
                if member.is_running:
                    self.troubles.append(f"{member.name} {what} within {END_S:g} s: {member.tail[-500:]}")
                else:
                    member.mark_end("left", time.monotonic())

    def _await(self, until: float, condition: Callable[[], bool]) -> None:
        while time.monotonic() < until and not condition():
            self._turn()

    def _look_after(self) -> None:
        now = time.monotonic()
        if now < self._sample_at:
            return
        self._sample_at = now + SAMPLE_S
        for host, member in self._crew.running.items():
            rss = member.rss_bytes
            if rss and member.has_opened:  # one that still starts would only spoil the picture
                self.samples.append(Sample(now, host, rss))
            if member.end == "runs" and member.process.poll() not in (None, 0):
                member.mark_end("failed", now)
                self.troubles.append(f"{member.name} ended by itself with {member.process.poll()}: {member.tail}")

    # --- faults ---------------------------------------------------------------------------------------------------

    def _begin(self, fault: Fault) -> None:
        """Unless something is wrong already: then what comes would only hide it."""
        if not self.troubles:
            self._acts[fault.kind](fault)

    def _kill(self, fault: Fault) -> None:
        member = self._crew.running[fault.host]
        if member.is_running:
            span = self._note_of(member, fault)
            span.to = member.kill()
            member.mark_end("killed", span.to)
            self._after(fault.for_s, lambda: self._start_again(fault))

    def _leave(self, fault: Fault) -> None:
        member = self._crew.running[fault.host]
        if member.is_running and member.has_opened:  # one that just starts would not know what it is told
            span = self._note_of(member, fault)
            member.terminate()
            self._after(fault.for_s, lambda: self._see_it_left(member, fault, span))

    def _see_it_left(self, member: Member, fault: Fault, span: Span) -> None:
        if self._crew.running[fault.host] is not member or member.end == "killed":
            span.to = time.monotonic()  # it was killed meanwhile, and that starts another
        elif member.is_running and self._is_over:
            span.to = time.monotonic()
            self._tell(f"{member.name} has not left yet, {span.to - span.since:.0f} s after it was told to")
        elif member.is_running:
            self._after(AGAIN_S, lambda: self._see_it_left(member, fault, span))
        else:
            span.to = time.monotonic()
            member.mark_end("left", span.to)
            self._start_again(fault)

    def _start_again(self, fault: Fault) -> None:
        self._crew.start(fault.host, fault.amount)

    def _stop(self, fault: Fault) -> None:
        member = self._crew.running[fault.host]
        if not member.is_running:
            return
        span = self._note_of(member, fault)
        member.stop()

        def resume() -> None:
            member.resume()
            span.to = time.monotonic()

        self._after(fault.for_s, resume)

    def _note_of(self, member: Member, fault: Fault) -> Span:
        """For as long as nothing else is known."""
        return self._note(Span(fault.kind, fault.host, time.monotonic(), float("inf"), fault.amount, member.name))

    def _pull(self, fault: Fault) -> None:
        self._cut(fault, lambda: self._crew.network.pull_cable(fault.host), self._put_back)

    def _put_back(self, host: str) -> None:
        self._crew.network.put_back_cable(host)

    def _deaf(self, fault: Fault) -> None:
        self._cut(fault, lambda: self._crew.network.disturb(fault.host, loss=100), self._crew.network.disturb)

    def _mute(self, fault: Fault) -> None:
        self._cut(fault, lambda: self._crew.network.disturb(fault.host, mute=100), self._crew.network.disturb)

    def _loss(self, fault: Fault) -> None:
        percent = int(fault.amount)
        self._cut(fault, lambda: self._crew.network.disturb(fault.host, loss=percent), self._crew.network.disturb)

    def _split(self, fault: Fault) -> None:
        self._cut(fault, self._crew.network.split, lambda _: self._crew.network.heal())

    def _cut(self, fault: Fault, cut: Callable[[], object], heal: Callable[[str], object]) -> None:
        span = self._note(Span(fault.kind, fault.host, time.monotonic(), float("inf"), fault.amount))
        cut()

        def mend() -> None:
            heal(fault.host)
            span.to = time.monotonic()

        self._after(fault.for_s, mend)

    def _step(self, fault: Fault) -> None:
        now = time.monotonic()
        self._crew.set_wall(fault.host, fault.amount)
        self._note(Span(fault.kind, fault.host, now, now, fault.amount))

    def _slow(self, fault: Fault) -> None:
        self._cut(
            fault,
            lambda: self._crew.set_sync(fault.host, fault.amount),
            lambda host: self._crew.set_sync(host, 0.0),
        )

    def _rekey(self, fault: Fault) -> None:
        """Each step when all have taken the one before; who is stopped takes it when he goes on."""
        span = self._note(Span(fault.kind, EVERYWHERE, time.monotonic(), float("inf")))
        self._is_rekeying = True
        steps = iter((self._crew.add_key, self._crew.use_key, self._crew.drop_keys))

        def go_on(waited_for: dict[Member, int], until: float) -> None:
            missing = [m.name for m, seen in waited_for.items() if m.is_running and m.count("rekeyed") <= seen]
            if missing and time.monotonic() < until:
                self._after(AGAIN_S, lambda: go_on(waited_for, until))
                return
            if missing:
                self.troubles.append(f"{', '.join(missing)} did not take other keys within {REKEY_S_MAX:g} s")
            step = next(steps, None)
            if step is None or missing:
                span.to = time.monotonic()
                self._is_rekeying = False
                return
            # Who has not opened anything yet reads the file as it will be then.
            opened = [member for member in self._crew.running.values() if member.has_opened]
            counts = {member: member.count("rekeyed") for member in opened if member.is_running}
            step()
            self._after(STEP_S, lambda: go_on(counts, time.monotonic() + REKEY_S_MAX))

        go_on({}, 0.0)

    def _note(self, span: Span) -> Span:
        self.spans.append(span)
        amount = f" {span.amount:g}" if span.amount and span.kind not in (Kind.KILL, Kind.LEAVE) else ""
        self._tell(f"{span.since - self.began_at:8.1f} s  {span.process or span.host:<10} {span.kind.value}{amount}")
        return span


def _all_have_opened(members: list[Member]) -> bool:
    return all(member.has_opened for member in members)


def _all_have_ended(members: list[Member]) -> bool:
    return not any(member.is_running for member in members)
