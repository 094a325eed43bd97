"""Every message accounted for. Owns what a soak must not show: what was lost, invented, repeated without a cause,
out of order, early, done twice in the ledger, or not in the journal.

What can be judged from multisets and orders alone, the simulator's checkers judge (`rvq.sim.checkers`): here the logs
become its events. What needs to know the faults (was this repeat explained, was this loss to be expected) is here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from bench.soak.chaos import Span
from bench.soak.schedule import AUDIT, GROUPS, HOSTS, JOURNAL, LEDGER, Kind
from bench.soak.story import Handling, Id, Lost, Story, Stream, by_message
from rvq.sim import checkers
from rvq.sim.checkers import Promise, Violation
from rvq.sim.history import Done, Ended, Event, Failed, Finished, Owed, Recording, Started, Stored, Submitted
from tests.processes.harness import UNREPORTED_S

AFTER_S = 0.5
"""What ends so soon after a fault may still be its doing: the first heartbeat after it carries what is done."""
NEWS_S = 1.0
"""What a sender sent so shortly before its death may have been heard by nobody, or by few."""
MOURNED_S = 8.0
"""A dead sender's receivers go on for 5 s, then tell what is lost: by then they have."""
SET_BACK_S = 1.0
"""After a wall clock was set back, what was handed out by the time before."""
TOLD_S = 10.0
"""After a fault: what it made one believe is told by then."""
LEASE_S = 1.0
"""What is shorter can make nobody think that a sender is gone."""


@dataclass
class Account:
    """What became of everything."""

    counts: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    repeats: list[tuple[Handling, Handling, Span | None]] = field(default_factory=list)
    """(former, latter, what explains it)."""

    @property
    def ok(self) -> bool:
        return not self.violations


def judge(story: Story) -> Account:
    """All that can be said against it."""
    account = Account()
    events = events_of(story)
    for check in (checkers.lost, checkers.invented, checkers.order, checkers.one_at_a_time, checkers.time):
        account.violations += check(events)
    account.violations += [Violation(Promise.BROKEN, 0.0, trouble) for trouble in story.troubles]
    groups = by_message(story.handlings)
    _judge_repeats(story, groups, account)
    account.violations += two_at_a_time(story, groups)
    account.violations += _judge_ledger(story)
    account.violations += _judge_journal(story)
    account.violations += _judge_checkpoints(story)
    _judge_mourning(story, account)
    _count(story, account)
    account.violations.sort(key=lambda violation: violation.at)
    return account


# --- as the simulator sees it -------------------------------------------------------------------------------------


def events_of(story: Story) -> list[Event]:
    """In the order of their true times."""
    end = max((stream.ended_at for stream in story.streams.values() if stream.end == "done"), default=0.0)
    events: list[Event] = [Recording(0.0, JOURNAL, JOURNAL)]
    for stream in story.streams.values():
        events += _of_stream(stream)
    for handling in story.handlings:
        events += _of_handling(story, handling)
    events += _committed_and_not_told(story)
    # A journal does not say when it was on disk: that it was there when the sender knew is judged by the checkpoints.
    events += [Stored(0.0, JOURNAL, JOURNAL, *id) for id, _ in story.stored]
    events = sorted(events, key=lambda event: event.at)
    for stream in story.streams.values():
        if stream.end == "done":
            done = [write.sequence for write in stream.writes]
            events += [Done(end, stream.id, group, sequence) for group in GROUPS for sequence in done]
    return events


def _of_stream(stream: Stream) -> Iterator[Event]:
    for write in stream.writes:
        key = None if write.key == "-" else write.key
        is_later = write.delay_s is not None
        yield Submitted(write.at, stream.id, write.sequence, key, write.name, is_later)
    if stream.writes:
        for group in GROUPS:  # it waits for all of them before its first message
            yield Owed(stream.writes[0].at, stream.id, group, 1)
    if stream.end != "done":
        yield Ended(stream.ended_at, stream.process, stream.id, crashed=stream.end == "killed")


def _of_handling(story: Story, handling: Handling) -> Iterator[Event]:
    key = None if handling.key == "-" else handling.key
    facts = (handling.process, handling.group, *handling.id)
    wall = handling.wall + _set_back(story, handling)
    yield Started(handling.start, *facts, key, handling.name, wall=wall, due_at=handling.due)
    if handling.finish is not None:
        kind = Finished if handling.outcome in ("finish", "taken") else Failed
        yield kind(handling.finish, *facts)


def _set_back(story: Story, handling: Handling) -> float:
    """What its wall clock had shown more, if it was set back just before."""
    steps = story.lives[handling.process].steps
    return sum(-by for at, by in steps if by < 0 and at <= handling.start <= at + SET_BACK_S)


def _committed_and_not_told(story: Story) -> Iterator[Event]:
    """Killed between the commit and the word for it: the effect is there, and whoever comes next finds the mark."""
    told = {handling.id for handling in story.handlings if handling.group == LEDGER and handling.outcome == "finish"}
    for id, process, at in story.effects:
        if id not in told:
            yield Finished(at, process, LEDGER, *id)


# --- repeats, and two at a time -----------------------------------------------------------------------------------


def _judge_repeats(story: Story, groups: dict[tuple[str, Id], list[Handling]], account: Account) -> None:
    """Handled again: only what was inherited, and only from one whom a fault befell just then."""
    for handlings in groups.values():
        for former, latter in pairwise(handlings):
            if former.outcome == "failed":
                continue  # the handler raised: it is to be tried again
            if former.outcome == "cancelled":  # it saw that its lease was over, and stopped
                account.counts[f"{former.group}: given back in time"] += 1
                continue
            if latter.outcome == "cancelled" and _has_just_woken(story, latter):
                account.counts[f"{latter.group}: begun on waking, and given back"] += 1
                continue
            span = explanation(story, former)
            account.repeats.append((former, latter, span))
            if not latter.inherited and latter.process != former.process:
                account.violations.append(_repeat(latter, former, "in a lane that was not inherited"))
            elif span is None:
                account.violations.append(_repeat(latter, former, "and no fault befell that one then"))
            elif not latter.redelivered:
                account.violations.append(_repeat(latter, former, "and it is not marked as redelivered"))


def _has_just_woken(story: Story, handling: Handling) -> bool:
    """It was stopped between looking at its lease and writing down that it begins: that is one step for it."""
    return any(
        span.kind is Kind.STOP and span.process == handling.process and span.since < handling.start <= span.to + AFTER_S
        for span in _spans(story, handling.process)
    )


def _repeat(latter: Handling, former: Handling, why: str) -> Violation:
    text = f"{_what(latter)} that {former.process} had ({former.outcome}, {former.start:.3f} to {former.finish}), {why}"
    return Violation(Promise.REPEATED, latter.start, text)


def _what(handling: Handling) -> str:
    stream, sequence = handling.id
    return f"{handling.process} started {handling.name} ({stream:016x}-{sequence}, {handling.group})"


def explanation(story: Story, handling: Handling) -> Span | None:
    """What befell its receiver, or the way between that and its sender, so close to it that it was not reported."""
    sender = story.streams.get(handling.id[0])
    end = handling.finish if handling.finish is not None else story.lives[handling.process].ended
    for span in _spans(story, handling.process):
        befalls = span.process == handling.process or (sender is not None and span.cuts(handling.host, sender.host))
        if befalls and handling.start <= span.to + AFTER_S and end >= span.since - UNREPORTED_S:
            return span
    return None


def _spans(story: Story, process: str) -> Iterator[Span]:
    """What can make a receiver lose its messages: polite leaving, clocks, keys and disks cannot."""
    for span in story.spans:
        if span.kind in (Kind.KILL, Kind.STOP, Kind.PULL, Kind.DEAF, Kind.MUTE, Kind.LOSS, Kind.SPLIT):
            yield span
    life = story.lives[process]
    for since, to in life.naps:
        yield Span(Kind.STOP, life.host, since, to, process=process)


def two_at_a_time(story: Story, groups: dict[tuple[str, Id], list[Handling]]) -> Iterator[Violation]:
    """No message is started while another receiver of the group has it, unless that one stood still meanwhile."""
    for handlings in groups.values():
        for former, latter in pairwise(handlings):
            end = former.finish if former.finish is not None else story.lives[former.process].ended
            if end > latter.start and not _stood_still(story, former, end):
                text = f"{_what(latter)} while {former.process} had it since {former.start:.3f}, until {end:.3f}"
                yield Violation(Promise.TWO_OWNERS, latter.start, text)


def _stood_still(story: Story, handling: Handling, end: float) -> bool:
    return any(
        span.kind is Kind.STOP and span.process == handling.process and handling.start <= span.to and span.since <= end
        for span in _spans(story, handling.process)
    )


# --- ledger, journal, checkpoints ---------------------------------------------------------------------------------


def _judge_ledger(story: Story) -> Iterator[Violation]:
    """Each effect once, and one for each message that was handled."""
    times = Counter(id for id, _, _ in story.effects)
    sent = {(stream.id, write.sequence) for stream in story.streams.values() for write in stream.writes}
    for id, count in times.items():
        if count > 1:
            yield Violation(Promise.REPEATED, 0.0, f"{_name(id)} has {count} effects in the ledger")
        if id not in sent:
            yield Violation(Promise.INVENTED, 0.0, f"{_name(id)} has an effect in the ledger, and nobody sent it")
    for handling in story.handlings:
        if handling.group == LEDGER and handling.outcome in ("finish", "taken") and handling.id not in times:
            text = f"{_name(handling.id)} was handled by {handling.process}, and has no effect in the ledger"
            yield Violation(Promise.LOST, handling.start, text)


def _judge_journal(story: Story) -> Iterator[Violation]:
    """Nothing is in it that was not sent so."""
    sent = {(stream.id, write.sequence): write.name for stream in story.streams.values() for write in stream.writes}
    for id, name in story.stored:
        if sent.get(id) != name:
            yield Violation(Promise.INVENTED, 0.0, f"{_name(id)} is in the journal as {name}, and was not sent so")


def _judge_checkpoints(story: Story) -> Iterator[Violation]:
    """What a sender knew to be done was done in every group, and is on disk, also if it was killed later."""
    for stream in story.streams.values():
        done = set(range(1, stream.checkpoint + 1))
        for group, handled in story.handled(stream.id).items():
            missing = sorted(done - handled)
            if missing:
                text = f"{stream.process} was told that these are done in {group}, and they are not: {missing[:10]}"
                yield Violation(Promise.LOST, stream.ended_at, text)


# --- senders that died --------------------------------------------------------------------------------------------


def _judge_mourning(story: Story, account: Account) -> None:
    """What a killed sender left undone is told as lost by whoever owned it: that, and nothing else."""
    told: dict[tuple[str, int], Reports] = defaultdict(lambda: defaultdict(list))
    for lost in story.lost:
        for id, sequence in lost.ids:
            told[lost.group, id][sequence].append(lost)
    for stream in story.streams.values():
        handled = story.handled(stream.id)
        for group in GROUPS:
            reports = told.pop((group, stream.id), {})
            if stream.end == "killed":
                _judge_undone(story, stream, group, handled[group], reports, account)
            _judge_false_alarms(story, stream, group, handled[group], reports, account)
    for group, id in told:
        text = f"messages of stream {id:016x} are told as lost in {group}, and there is none"
        account.violations.append(Violation(Promise.TOLD, 0.0, text))


Reports = dict[int, list[Lost]]
"""By sequence."""


def _judge_undone(
    story: Story, stream: Stream, group: str, handled: set[int], reports: Reports, account: Account
) -> None:
    """Each was told as lost, or nobody was there to tell, or nobody can have heard it."""
    counts = account.counts
    excuse = _who_was_not_there(story, stream, group)
    somebody = _was_somebody_there(story, stream, group)
    for write in stream.writes:
        if write.sequence in handled:
            continue
        counts[f"{group}: undone when their sender died"] += 1
        if any(lost.is_certain for lost in reports.get(write.sequence, ())):
            counts[f"{group}: of these told as lost"] += 1
        elif write.sequence in reports:
            counts[f"{group}: of these told as lost, or handled by one who is gone too"] += 1
        elif write.at > stream.ended_at - NEWS_S:
            counts[f"{group}: of these sent in its last second"] += 1
        elif not somebody:
            counts[f"{group}: of these held, as nobody of the group was there"] += 1
        elif excuse is not None:
            counts[f"{group}: of these owned by one that was not there either"] += 1
        else:
            text = f"{write.name} of {stream.process}, killed, was not handled in {group}, and nobody told of it"
            account.violations.append(Violation(Promise.TOLD, stream.ended_at, text))


def _was_somebody_there(story: Story, stream: Stream, group: str) -> bool:
    """Was a member of the group on the bus when the sender died, and long enough for it to know?"""
    at = stream.ended_at
    lives = [life for life in story.lives.values() if HOSTS[life.host] == group]
    return any(life.opened < at - NEWS_S and at < life.ended for life in lives)


def _who_was_not_there(story: Story, stream: Stream, group: str) -> Span | None:
    """A fault that befell a member of the group, from just before the death until the lost had been told."""
    for span in story.spans:
        hits = span.kind not in (Kind.STEP, Kind.REKEY, Kind.SLOW) and (
            HOSTS.get(span.host) == group or span.kind is Kind.SPLIT or (span.host == stream.host and not span.process)
        )
        if hits and span.since < stream.ended_at + MOURNED_S and span.to > stream.ended_at - LEASE_S - AFTER_S:
            return span
    return None


def _judge_false_alarms(
    story: Story, stream: Stream, group: str, handled: set[int], reports: Reports, account: Account
) -> None:
    """Told as lost, and yet handled: only if the one who told could not know."""
    for sequence, tellings in reports.items():
        if sequence not in handled and stream.end == "killed":
            continue
        account.counts[f"{group}: told as lost by one cut off, and handled"] += 1
        for lost in tellings:
            if lost.is_certain and not _could_not_know(story, stream, sequence, lost):
                text = f"{lost.process} told that {_name((stream.id, sequence))} is lost in {group}, and it is not"
                account.violations.append(Violation(Promise.TOLD, lost.at, text))


def _could_not_know(story: Story, stream: Stream, sequence: int, lost: Lost) -> bool:
    """It, its sender or the way between was away; or whoever handled it was before it could say so."""
    for span in _spans(story, lost.process):
        away = span.process in (lost.process, stream.process) or span.cuts(lost.host, stream.host)
        if away and span.since < lost.at < span.to + TOLD_S:
            return True
    handlers = [h for h in story.handlings if h.id == (stream.id, sequence) and h.group == lost.group]
    return any(explanation(story, handling) is not None for handling in handlers)


# --- counts -------------------------------------------------------------------------------------------------------


def _count(story: Story, account: Account) -> None:
    counts = account.counts
    counts["sent"] = sum(len(stream.writes) for stream in story.streams.values())
    counts["keyed"] = sum(write.key != "-" for stream in story.streams.values() for write in stream.writes)
    counts["with a due time"] = sum(
        write.delay_s is not None for stream in story.streams.values() for write in stream.writes
    )
    counts["lives of senders"] = len(story.streams)
    counts["senders killed"] = sum(stream.end == "killed" for stream in story.streams.values())
    for group in (LEDGER, AUDIT):
        handlings = [handling for handling in story.handlings if handling.group == group]
        counts[f"{group}: started"] = len(handlings)
        counts[f"{group}: failed, and tried again"] = sum(h.outcome == "failed" for h in handlings)
        repeats = [former for former, _, _ in account.repeats if former.group == group]
        counts[f"{group}: started again by an heir"] = len(repeats)
        counts[f"{group}: of these handled to the end before"] = sum(h.outcome == "finish" for h in repeats)
    for group in GROUPS:
        counts[f"{group}: handled"] = sum(len(story.handled(id)[group]) for id in story.streams)
    counts["effects in the ledger"] = len(story.effects)
    counts["messages in the journal"] = len(story.stored)
    # What holds for all first, then group by group.
    by_group = sorted(counts, key=lambda what: what.partition(":")[0] if ":" in what else "")
    account.counts = Counter({what: counts[what] for what in by_group})


def _name(id: Id) -> str:
    return f"{id[0]:016x}-{id[1]}"


def words(violations: Sequence[Violation], began_at: float, most: int = 20) -> Iterable[str]:
    """A line for each, by the time since the beginning."""
    for violation in violations[:most]:
        at = f"{violation.at - began_at:8.3f} s" if violation.at else "          "
        yield f"{at}  {violation.promise.value}: {violation.text}"
    if len(violations) > most:
        yield f"... and {len(violations) - most} more"
