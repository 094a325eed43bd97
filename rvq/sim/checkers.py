"""The promises, judged from a history. Owns what counts as lost, invented, repeated, two owners and out of order.

Each checker reads a list of events and returns what it found. They know no machines: a history written by hand is as
good as one from a world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from rvq.errors import RvqError
from rvq.sim.history import Broken, Done, Ended, Event, Failed, Finished, Owed, Started, Submitted

SHOWN_MAX = 8
"""Violations that a verdict prints in full."""

Handled = tuple[int, str, int]
"""A message in a group: stream, group, sequence."""


class Promise(Enum):
    """What can be broken."""

    LOST = "lost"
    INVENTED = "invented"
    REPEATED = "repeated"
    TWO_OWNERS = "two owners"
    ORDER = "order"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise."""

    promise: Promise
    at: float
    text: str

    def __str__(self) -> str:
        return f"{self.at:9.4f}  {self.promise.value}: {self.text}"


class PromiseBroken(RvqError, AssertionError):
    """A world broke a promise. `verdict` has the details."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        super().__init__(str(verdict))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a world. `repeats` are those that a takeover explains; what nothing explains is a violation."""

    seed: int
    submitted: int
    started: int
    finished: int
    repeats: int
    virtual_s: float
    violations: tuple[Violation, ...]
    digest: str = ""

    @property
    def ok(self) -> bool:
        return not self.violations

    def raise_if_bad(self) -> None:
        """Raise PromiseBroken unless every promise was kept."""
        if self.violations:
            raise PromiseBroken(self)

    def __str__(self) -> str:
        head = (
            f"seed {self.seed}: {self.submitted} submitted, {self.started} started, {self.finished} finished, "
            f"{self.repeats} explained repeats, {self.virtual_s:.1f} virtual s"
        )
        if self.ok:
            return f"{head}: all promises kept"
        lines = [f"{head}: {len(self.violations)} violations"]
        lines += [f"  {violation}" for violation in self.violations[:SHOWN_MAX]]
        if len(self.violations) > SHOWN_MAX:
            lines.append(f"  ... and {len(self.violations) - SHOWN_MAX} more")
        return "\n".join(lines)


def judge(seed: int, events: Sequence[Event], *, converged: bool = True, virtual_s: float = 0.0) -> Verdict:
    """All checkers on one history. Without `converged`, what is not done yet is not lost."""
    violations = [violation for check in CHECKERS for violation in check(events) if converged or check is not lost]
    violations.sort(key=lambda violation: violation.at)
    counts = {kind: sum(type(event) is kind for event in events) for kind in (Submitted, Started, Finished)}
    return Verdict(
        seed=seed,
        submitted=counts[Submitted],
        started=counts[Started],
        finished=counts[Finished],
        repeats=sum(attempt.explained for attempt in _repeats(events)),
        virtual_s=virtual_s,
        violations=tuple(violations),
    )


# --- lost and invented --------------------------------------------------------------------------------------------


def lost(events: Iterable[Event]) -> list[Violation]:
    """After all calmed down: every message of a sender that did not crash is done in each group that it is owed to."""
    last: dict[int, int] = {}
    first: dict[int, dict[str, int]] = {}
    crashed: set[int] = set()
    finished: set[Handled] = set()
    done: set[Handled] = set()
    end = 0.0
    for event in events:
        end = event.at
        match event:
            case Submitted():
                last[event.stream] = event.sequence
            case Owed():
                first.setdefault(event.stream, {}).setdefault(event.group, event.first)
            case Ended() if event.crashed and event.stream is not None:
                crashed.add(event.stream)
            case Finished():
                finished.add((event.stream, event.group, event.sequence))
            case Done():
                done.add((event.stream, event.group, event.sequence))
    found = []
    for stream, final in last.items():
        if stream in crashed:
            continue
        if stream not in first:
            found.append(Violation(Promise.LOST, end, f"no group ever got stream {stream:x} ({final} messages)"))
        for group, begin in first.get(stream, {}).items():
            owed = range(begin, final + 1)
            unhandled = [q for q in owed if (stream, group, q) not in finished]
            unknown = [q for q in owed if (stream, group, q) in finished and (stream, group, q) not in done]
            if unhandled:
                found.append(_lost(end, stream, group, unhandled, "never handled"))
            if unknown:
                found.append(_lost(end, stream, group, unknown, "handled, but never done at the sender"))
    return found


def _lost(at: float, stream: int, group: str, sequences: list[int], why: str) -> Violation:
    shown = ", ".join(map(str, sequences[:10])) + (", ..." if len(sequences) > 10 else "")
    return Violation(Promise.LOST, at, f"{len(sequences)} messages of {stream:x} in {group} {why}: {shown}")


def invented(events: Iterable[Event]) -> list[Violation]:
    """Nothing is handled that was not submitted, with the body and the key it was submitted with."""
    submitted: dict[tuple[int, int], Submitted] = {}
    found = []
    for event in events:
        if type(event) is Submitted:
            submitted[event.stream, event.sequence] = event
        elif type(event) is Started:
            origin = submitted.get((event.stream, event.sequence))
            if origin is None:
                found.append(Violation(Promise.INVENTED, event.at, f"{_what(event)}: nobody submitted it"))
            elif (origin.body, origin.key) != (event.body, event.key):
                text = f"{_what(event)}: {event.body!r:.40} was submitted as {origin.body!r:.40}"
                found.append(Violation(Promise.INVENTED, event.at, text))
    return found


# --- repeated -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Attempt:
    """One start of a message and what became of it."""

    receiver: str
    state: str = "still running"


@dataclass(frozen=True, slots=True)
class _Repeat:
    """A start of a message that had been started before and had not failed."""

    at: float
    text: str
    explained: bool


def repeated(events: Iterable[Event]) -> list[Violation]:
    """Nothing is handled twice in a group, except by an heir that could not know: it had asked for the lane's progress
    before the sender recorded the message as done. A retry after a failure is no repeat, nor is a crash's remainder."""
    return [Violation(Promise.REPEATED, r.at, r.text) for r in _repeats(events) if not r.explained]


def _repeats(events: Iterable[Event]) -> list[_Repeat]:
    attempts: dict[Handled, list[_Attempt]] = {}
    running: dict[tuple[str, Handled], _Attempt] = {}
    done_at: dict[Handled, float] = {}
    found = []
    for event in events:
        match event:
            case Started():
                message = (event.stream, event.group, event.sequence)
                before = attempts.setdefault(message, [])
                found += [_repeat(event, attempt, done_at.get(message)) for attempt in before if _counts(attempt)]
                before.append(attempt := _Attempt(event.receiver))
                running[event.receiver, message] = attempt
            case Finished() | Failed():
                ended = running.pop((event.receiver, (event.stream, event.group, event.sequence)), None)
                if ended is not None:
                    ended.state = "finished" if type(event) is Finished else "failed"
            case Done():
                done_at.setdefault((event.stream, event.group, event.sequence), event.at)
            case Ended():
                for receiver, message in [name for name in running if name[0] == event.process]:
                    running.pop((receiver, message)).state = "crashed"
    return found


def _counts(attempt: _Attempt) -> bool:
    return attempt.state in ("finished", "still running")


def _repeat(start: Started, earlier: _Attempt, done_at: float | None) -> _Repeat:
    """Is this second start explained by what its receiver could know?"""
    what = f"{_what(start)}, which {earlier.receiver} has {earlier.state}"
    if start.asked_at is None:
        return _Repeat(start.at, f"{what}, in a lane that was always its own", explained=False)
    if earlier.state == "still running":
        return _Repeat(start.at, f"{what}, in the same process", explained=earlier.receiver != start.receiver)
    if done_at is not None and done_at < start.asked_at:
        text = f"{what}: done at the sender at {done_at:.4f}, and it asked at {start.asked_at:.4f}"
        return _Repeat(start.at, text, explained=False)
    return _Repeat(start.at, what, explained=True)


# --- two owners, order, broken machines ---------------------------------------------------------------------------


def two_owners(events: Iterable[Event]) -> list[Violation]:
    """Whenever a message is started, no other receiver of the group could start it too."""
    return [
        Violation(Promise.TWO_OWNERS, event.at, f"{_what(event)}, and {', '.join(event.rivals)} could too")
        for event in events
        if type(event) is Started and event.rivals
    ]


def order(events: Iterable[Event]) -> list[Violation]:
    """The messages of one key of a stream start in order, each when the ones before it have been handled."""
    owed: dict[tuple[int, str], int] = {}
    of_key: dict[tuple[int, str | bytes], list[int]] = {}
    finished: set[Handled] = set()
    # How many of a key's messages are known to be finished, from the first owed on: keeps this from being quadratic.
    settled: dict[tuple[int, str, str | bytes], int] = {}
    found = []
    for event in events:
        match event:
            case Submitted() if event.key is not None:
                of_key.setdefault((event.stream, event.key), []).append(event.sequence)
            case Owed():
                owed.setdefault((event.stream, event.group), event.first)
            case Finished():
                finished.add((event.stream, event.group, event.sequence))
            case Started() if event.key is not None:
                begin = owed.get((event.stream, event.group), 1)
                line = of_key.get((event.stream, event.key), [])
                index = settled.get((event.stream, event.group, event.key), 0)
                while index < len(line) and (
                    line[index] < begin or (event.stream, event.group, line[index]) in finished
                ):
                    index += 1
                settled[event.stream, event.group, event.key] = index
                if index < len(line) and line[index] < event.sequence:
                    text = f"{_what(event)}, but {line[index]} of the same key {event.key!r} is not handled yet"
                    found.append(Violation(Promise.ORDER, event.at, text))
    return found


def broken(events: Iterable[Event]) -> list[Violation]:
    """No machine raises, and the invariants of each hold."""
    return [
        Violation(Promise.BROKEN, event.at, f"{event.process}: {event.error}")
        for event in events
        if type(event) is Broken
    ]


def _what(start: Started) -> str:
    return f"{start.receiver} started {start.stream:x}/{start.sequence} ({start.group})"


CHECKERS: tuple[Callable[[Sequence[Event]], list[Violation]], ...] = (
    lost,
    invented,
    repeated,
    two_owners,
    order,
    broken,
)
