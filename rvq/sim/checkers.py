"""The promises, judged from a history. Owns what counts as lost, invented, repeated, two owners and out of order.

Each checker reads a list of events and returns what it found. They know no machines: a history written by hand is as
good as one from a world.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from rvq.core.stats import Stats
from rvq.errors import RvqError
from rvq.sim.history import (
    Broken,
    Dead,
    Deceived,
    Done,
    Ended,
    Event,
    Failed,
    Finished,
    GivenUp,
    Owed,
    Recording,
    Seen,
    Started,
    Stored,
    Submitted,
    Took,
)
from rvq.wire.records import shard_of

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
    TIME = "time"
    ATTEMPTS = "attempts"
    ACCOUNT = "account"
    STORED = "stored"
    TOLD = "told"
    SEALED = "sealed"
    LEFT = "left"
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


def judge(
    seed: int,
    events: Sequence[Event],
    accounts: Mapping[str, Stats] | None = None,
    senders: Mapping[int, Stats] | None = None,
    *,
    converged: bool = True,
    virtual_s: float = 0.0,
    also: Iterable[Violation] = (),
) -> Verdict:
    """All checkers on one history, with what receivers counted, by name, and senders, by stream. Without `converged`,
    what is not done yet is not lost. also: what else was found."""
    violations = [violation for check in CHECKERS for violation in check(events) if converged or check is not lost]
    all_done = converged and not any(violation.promise is Promise.LOST for violation in violations)
    violations += account(events, accounts or {}, senders, converged=all_done)
    violations += also
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
    """After all calmed down: every message of a sender that did not crash is done in each group that it is owed to, and
    that was not given up since. In a journal it is stored, whatever its time to live."""
    last: dict[int, int] = {}
    first: dict[int, dict[str, int]] = {}
    given_up: set[int] = set()
    crashed: set[int] = set()
    finished: set[Handled] = set()
    done: set[Handled] = set()
    may_expire: set[tuple[int, int]] = set()
    journals: set[str] = set()
    end = 0.0
    for event in events:
        end = event.at
        match event:
            case Submitted():
                last[event.stream] = event.sequence
                if event.may_expire:
                    may_expire.add((event.stream, event.sequence))
            case Owed():
                first.setdefault(event.stream, {}).setdefault(event.group, event.first)
            case GivenUp():
                first.get(event.stream, {}).pop(event.group, None)
                given_up.add(event.stream)
            case Ended() if event.crashed and event.stream is not None:
                crashed.add(event.stream)
            case Recording():
                journals.add(event.group)
            case Finished() | Dead() | Stored():
                finished.add((event.stream, event.group, event.sequence))
            case Done():
                done.add((event.stream, event.group, event.sequence))
    found = []
    for stream, final in last.items():
        if stream in crashed:
            continue
        if stream not in first and stream not in given_up:
            found.append(Violation(Promise.LOST, end, f"no group ever got stream {stream:x} ({final} messages)"))
        for group, begin in first.get(stream, {}).items():
            excused = set() if group in journals else may_expire
            owed = [q for q in range(begin, final + 1) if (stream, q) not in excused]
            unhandled = [q for q in owed if (stream, group, q) not in finished]
            handled = [q for q in owed if (stream, group, q) in finished]
            unknown = [q for q in handled if (stream, group, q) not in done]
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
        elif isinstance(event, (Started, Took)):
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
            case Started() | Took():
                message = (event.stream, event.group, event.sequence)
                before = attempts.setdefault(message, [])
                found += [_repeat(event, attempt, done_at.get(message)) for attempt in before if _counts(attempt)]
                before.append(attempt := _Attempt(event.receiver))
                running[event.receiver, message] = attempt
            case Finished() | Failed() | Dead() | Stored():
                message = (event.stream, event.group, event.sequence)
                ended = running.pop((event.receiver, message), None)
                if ended is None and type(event) is Dead:
                    ended = attempts[message][-1]  # it failed just now, and for the last time
                if ended is not None:
                    ended.state = "failed" if type(event) is Failed else "finished"
            case Done():
                done_at.setdefault((event.stream, event.group, event.sequence), event.at)
            case Ended():
                for receiver, message in [name for name in running if name[0] == event.process]:
                    running.pop((receiver, message)).state = "crashed"
    return found


def _counts(attempt: _Attempt) -> bool:
    return attempt.state in ("finished", "still running")


def _repeat(start: Started | Took, earlier: _Attempt, done_at: float | None) -> _Repeat:
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
        if isinstance(event, (Started, Took)) and event.rivals
    ]


def order(events: Iterable[Event]) -> list[Violation]:
    """The messages of one key of a stream start in order, each when the ones before it have been handled."""
    owed: dict[tuple[int, str], int] = {}
    given_up: set[tuple[int, str]] = set()
    of_key: dict[tuple[int, str | bytes], list[int]] = {}
    finished: set[Handled] = set()
    # How many of a key's messages are known to be finished, from the first owed on: keeps this from being quadratic.
    settled: dict[tuple[int, str, str | bytes], int] = {}
    found = []
    for event in events:
        match event:
            case Submitted() if event.key is not None and not event.is_later:
                of_key.setdefault((event.stream, event.key), []).append(event.sequence)
            case Owed():
                if (event.stream, event.group) in given_up:
                    given_up.remove((event.stream, event.group))
                    owed[event.stream, event.group] = event.first
                owed.setdefault((event.stream, event.group), event.first)
            case GivenUp():
                given_up.add((event.stream, event.group))
            case Finished() | Dead():
                finished.add((event.stream, event.group, event.sequence))
            case Started() if event.key is not None and event.due_at is None:
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


def one_at_a_time(events: Iterable[Event]) -> list[Violation]:
    """A receiver never has two messages of one key of a stream in hand, unless it lost the first to another, or its
    group was given up."""
    held: dict[tuple[str, int, str | bytes], Started] = {}
    keys: dict[tuple[str, int, int], str | bytes] = {}
    handled_elsewhere: set[Handled] = set()
    given_up_to: dict[tuple[int, str], int] = {}
    found = []
    for event in events:
        match event:
            case Started() if event.key is not None:
                name = (event.receiver, event.stream, event.key)
                before = held.get(name)
                lost_to = given_up_to.get((event.stream, event.group), 0)
                if (
                    before is not None
                    and before.sequence > lost_to
                    and (before.stream, before.group, before.sequence) not in handled_elsewhere
                ):
                    text = f"{_what(event)} while {before.sequence} of the same key {event.key!r} is in hand"
                    found.append(Violation(Promise.ORDER, event.at, text))
                held[name] = event
                keys[event.receiver, event.stream, event.sequence] = event.key
            case GivenUp():
                given_up_to[event.stream, event.group] = event.last
            case Finished() | Failed() | Dead():
                handled_elsewhere.add((event.stream, event.group, event.sequence))
                key = keys.get((event.receiver, event.stream, event.sequence))
                now = held.get((event.receiver, event.stream, key)) if key is not None else None
                if key is not None and now is not None and now.sequence == event.sequence:
                    del held[event.receiver, event.stream, key]
    return found


def time(events: Iterable[Event]) -> list[Violation]:
    """Nothing is started before it is due, nor when its time to live is over, by the clock of whoever starts it."""
    found = []
    for event in events:
        if type(event) is Started:
            if event.due_at is not None and event.wall < event.due_at:
                text = f"{_what(event)} {event.due_at - event.wall:.4f} s early"
                found.append(Violation(Promise.TIME, event.at, text))
            if event.expires_at is not None and event.wall >= event.expires_at:
                text = f"{_what(event)} {event.wall - event.expires_at:.4f} s after its time to live"
                found.append(Violation(Promise.TIME, event.at, text))
    return found


def attempts(events: Iterable[Event]) -> list[Violation]:
    """A message is given up when it was tried as often as it should be, not sooner, and then it is not tried again.

    (That it is given up once follows from `repeated`: every giving up begins with a start.)
    """
    starts: dict[Handled, int] = {}
    found = []
    for event in events:
        match event:
            case Started():
                message = (event.stream, event.group, event.sequence)
                starts[message] = starts.get(message, 0) + 1
            case Dead():
                tried = starts.get((event.stream, event.group, event.sequence), 0)
                if event.attempts < event.attempts_max or tried < event.attempts:
                    text = (
                        f"{event.receiver} gave {event.stream:x}/{event.sequence} up after {event.attempts} attempts "
                        f"of {event.attempts_max}, and it was started {tried} times"
                    )
                    found.append(Violation(Promise.ATTEMPTS, event.at, text))
    return found


def account(
    events: Sequence[Event],
    receivers: Mapping[str, Stats],
    senders: Mapping[int, Stats] | None = None,
    *,
    converged: bool = True,
) -> list[Violation]:
    """What each receiver and sender counted is what happened, in all and by shard, and its lanes add up to the whole.

    Counts of what happens to a message for the first time are known exactly; where another receiver, or a time to live,
    may have come first, they lie between what must and what can have been counted.
    """
    books = _Books(events)
    found = []

    def compare(who: str, name: str, counted: int, least: int, most: int, where: str = "") -> None:
        if not least <= counted <= most:
            there = f"{least}" if least == most else f"{least} to {most}"
            found.append(Violation(Promise.ACCOUNT, books.end, f"{who} counts {counted} {name}{where}, not {there}"))

    for receiver, stats in receivers.items():
        for name in ("emitted", "acked", "retried", "dead"):
            least, most = books.least[receiver, name], books.most[receiver, name]
            compare(receiver, name, getattr(stats, name), least.total(), most.total())
            shards = {*stats.shards, *least, *most} - {None}
            for shard in sorted(shard for shard in shards if shard is not None):
                counts = stats.shards.get(shard)
                counted = getattr(counts, name) if counts is not None else 0
                compare(receiver, name, counted, least[shard], most[shard], f" in shard {shard}")
        for name in ("routed", "emitted", "acked", "retried", "dead", "expired", "handed_over"):
            lanes = sum(getattr(counts, name) for counts in stats.lanes.values())
            compare(receiver, name, lanes, getattr(stats, name), getattr(stats, name), " in its lanes")
        ended = stats.acked + stats.dead + stats.expired + stats.handed_over
        compare(receiver, "routed", stats.routed, ended, stats.routed)
        compare(receiver, "expired", stats.expired, 0, books.may_expire)
        compare(receiver, "handed_over", stats.handed_over, 0, stats.routed)
    for stream, stats in (senders or {}).items():
        inserted, over = books.submitted[stream], converged and stream not in books.crashed
        who = f"sender {stream:x}"
        compare(who, "inserted", stats.inserted, inserted, inserted)
        compare(who, "routed", stats.routed, inserted if over else 0, inserted)
        undone = books.given_up[stream]
        compare(who, "acked", stats.acked, max(0, inserted - undone) if over else 0, inserted)
        compare(who, "lost", stats.lost, 0 if books.may_expire else undone, undone)
    return found


class _Books:
    """What must and what can have been counted, by who and what, then by shard (None without a key)."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.least: defaultdict[tuple[str, str], Counter[int | None]] = defaultdict(Counter)
        self.most: defaultdict[tuple[str, str], Counter[int | None]] = defaultdict(Counter)
        self.submitted: Counter[int] = Counter()
        self.given_up: Counter[int] = Counter()
        """Messages of groups that a sender gave up, at most."""
        self.crashed: set[int] = set()
        self.may_expire = 0
        self.end = events[-1].at if events else 0.0
        self._shards: dict[tuple[int, int], int | None] = {}
        self._expiring: set[tuple[int, int]] = set()
        self._settled: set[Handled] = set()
        self._done: dict[tuple[int, str], list[int]] = {}
        self._owed: dict[tuple[int, str], int] = {}
        self._over: dict[tuple[int, str], int] = {}
        """Up to where a group was given up: a receiver that hears of it first does not count what it finishes."""
        for event in events:
            self._enter(event)

    def _enter(self, event: Event) -> None:
        match event:
            case Submitted():
                self.submitted[event.stream] += 1
                self._shards[event.stream, event.sequence] = None if event.key is None else shard_of(event.key)
                if event.may_expire:
                    self.may_expire += 1
                    self._expiring.add((event.stream, event.sequence))
            case Started():
                self._count(event, "emitted", is_news=True)
            case Took():
                self._count(event, "emitted", is_news=True)
            case Finished() | Stored():
                self._count(event, "acked", is_news=self._is_news(event))
                self._settle(event)
            case Failed() if event.again:
                self._count(event, "retried", is_news=self._is_news(event))
            case Dead():
                self._count(event, "dead", is_news=True)
                self._settle(event)
            case Owed():
                self._owed[event.stream, event.group] = event.first
            case Done():
                self._done.setdefault((event.stream, event.group), []).append(event.sequence)
            case GivenUp():
                first = self._owed.pop((event.stream, event.group))
                self._over[event.stream, event.group] = event.last
                done = sorted(self._done.get((event.stream, event.group), ()))
                known = bisect_right(done, event.last) - bisect_right(done, first - 1)
                self.given_up[event.stream] += event.last - first + 1 - known
            case Ended() if event.crashed and event.stream is not None:
                self.crashed.add(event.stream)

    def _count(self, event: Started | Took | Finished | Stored | Failed | Dead, name: str, *, is_news: bool) -> None:
        # Recorders take frames, and know no shards.
        is_recorded = isinstance(event, (Took, Stored))
        shard = None if is_recorded else self._shards.get((event.stream, event.sequence))
        self.most[event.receiver, name][shard] += 1
        if is_news:
            self.least[event.receiver, name][shard] += 1

    def _is_news(self, event: Finished | Stored | Failed) -> bool:
        """Nobody can have done it before, nor given it up."""
        return (
            (event.stream, event.group, event.sequence) not in self._settled
            and (event.stream, event.sequence) not in self._expiring
            and event.sequence > self._over.get((event.stream, event.group), 0)
        )

    def _settle(self, event: Finished | Stored | Dead) -> None:
        self._settled.add((event.stream, event.group, event.sequence))


def seen(events: Iterable[Event]) -> list[Violation]:
    """A tap is shown what was submitted, each message of a stream once and in the order of the sequences."""
    submitted: dict[tuple[int, int], Submitted] = {}
    last: dict[tuple[str, int], int] = {}
    found = []
    for event in events:
        if type(event) is Submitted:
            submitted[event.stream, event.sequence] = event
        elif type(event) is Seen:
            what = f"{event.tap} was shown {event.stream:x}/{event.sequence}"
            origin = submitted.get((event.stream, event.sequence))
            if origin is None or (origin.body, origin.key) != (event.body, event.key):
                found.append(Violation(Promise.INVENTED, event.at, f"{what}: {event.body!r:.40} was not submitted"))
            before = last.get((event.tap, event.stream), 0)
            if event.sequence <= before:
                found.append(Violation(Promise.ORDER, event.at, f"{what} after {before}"))
            last[event.tap, event.stream] = max(before, event.sequence)
    return found


def stored(events: Iterable[Event]) -> list[Violation]:
    """What is done in a journal was on a disk before."""
    journals: set[str] = set()
    safe: set[Handled] = set()
    found = []
    for event in events:
        match event:
            case Recording():
                journals.add(event.group)
            case Stored():
                safe.add((event.stream, event.group, event.sequence))
            case Done() if event.group in journals:
                if (event.stream, event.group, event.sequence) not in safe:
                    text = f"{event.stream:x}/{event.sequence} is done in {event.group}, and nobody has stored it"
                    found.append(Violation(Promise.STORED, event.at, text))
    return found


def broken(events: Iterable[Event]) -> list[Violation]:
    """No machine raises, and the invariants of each hold."""
    return [
        Violation(Promise.BROKEN, event.at, f"{event.process}: {event.error}")
        for event in events
        if type(event) is Broken
    ]


def sealed(events: Iterable[Event]) -> list[Violation]:
    """On a sealed bus nobody is told what is false or old."""
    return [
        Violation(Promise.SEALED, event.at, f"{event.process}: {event.words}")
        for event in events
        if type(event) is Deceived
    ]


def _what(start: Started | Took) -> str:
    word = "took" if type(start) is Took else "started"
    return f"{start.receiver} {word} {start.stream:x}/{start.sequence} ({start.group})"


CHECKERS: tuple[Callable[[Sequence[Event]], list[Violation]], ...] = (
    lost,
    invented,
    repeated,
    two_owners,
    order,
    one_at_a_time,
    time,
    attempts,
    seen,
    stored,
    sealed,
    broken,
)
