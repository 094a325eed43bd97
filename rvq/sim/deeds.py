"""What recorders were told of others' work, against what happened. Owns reading runs of lanes as messages.

Reads only what is on the recorders' disks, as an audit would: the stamps say who owned what, and the frames in which
receivers tell what they did. The keys of messages stand for the shards in their frames.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rvq.core.stats import Stats
from rvq.sim.checkers import Promise, Violation
from rvq.sim.history import Dead, Ended, Event, Failed, Finished, Recorded, Submitted
from rvq.wire.frames import Handled, HandledRun, Outcome, Stamp
from rvq.wire.records import shard_of

TAIL_S = 0.3
"""What a receiver did in its last moments, before a heartbeat, is not told if it crashes."""


class Deed(NamedTuple):
    """One message, and what became of it at one receiver."""

    group: str
    receiver: str
    stream: int
    sequence: int
    outcome: int


class Lanes(NamedTuple):
    """The slots of a segment, and with keys which of them has which shard."""

    slots: int
    shard_map: tuple[int, ...]


def claimed(events: Iterable[Event]) -> list[Violation]:
    """Nobody is told of a deed that was not done by whom it is said."""
    events = list(events)
    if not any(type(event) is Recorded for event in events):
        return []
    done = _deeds(events)
    expired = {(event.stream, event.sequence) for event in events if type(event) is Submitted and event.may_expire}
    found = []
    for deed, count in _told(events).items():
        if deed.outcome == Outcome.EXPIRED:
            known = (deed.stream, deed.sequence) in expired
        else:
            known = deed.outcome == Outcome.HANDED_OVER or count <= done[deed]
        if not known:
            found.append(_violation(events, f"{_what(deed)} {count} times, and did so {done[deed]} times"))
    return found


def untold(events: Iterable[Event], accounts: Mapping[str, Stats]) -> list[Violation]:
    """Everything that was done was told, in a world in which recorders heard everybody all the time. (That nothing else
    was told is what `claimed` finds.)"""
    events = list(events)
    told = _told(events)
    ended = {event.process: event.at for event in events if type(event) is Ended and event.crashed}
    gone = {event.stream: event.at for event in events if type(event) is Ended and event.stream is not None}
    sure = _deeds(event for event in events if not _is_unsure(event, ended, gone))
    found = [
        _violation(events, f"{_what(deed)} {told[deed]} times, and did so {count} times")
        for deed, count in sure.items()
        if told[deed] < count
    ]
    counts = Counter((deed.receiver, deed.outcome) for deed in told.elements())
    for receiver, stats in accounts.items():
        for outcome, count in ((Outcome.EXPIRED, stats.expired), (Outcome.HANDED_OVER, stats.handed_over)):
            if counts[receiver, outcome] != count and receiver not in ended:
                text = f"{receiver} told of {counts[receiver, outcome]} messages {outcome.name}, and counts {count}"
                found.append(_violation(events, text))
    return found


def _is_unsure(event: Event, ended: Mapping[str, float], gone: Mapping[int, float]) -> bool:
    """Need not be told: done just before a crash, or when the stream was over."""
    if not isinstance(event, (Finished, Failed, Dead)):
        return False
    return event.at > ended.get(event.receiver, math.inf) - TAIL_S or event.at > gone.get(event.stream, math.inf)


def _deeds(events: Iterable[Event]) -> Counter[Deed]:
    """What happened. A failure after which a message was given up at once is no retry."""
    found: Counter[Deed] = Counter()
    failed: dict[tuple[str, int, int], float] = {}
    for event in events:
        match event:
            case Finished():
                found[_deed(event, Outcome.ACKED)] += 1
            case Failed():
                found[_deed(event, Outcome.RETRIED)] += 1
                failed[event.receiver, event.stream, event.sequence] = event.at
            case Dead():
                found[_deed(event, Outcome.DEAD)] += 1
                if failed.get((event.receiver, event.stream, event.sequence)) == event.at:
                    found[_deed(event, Outcome.RETRIED)] -= 1
    return found


def _deed(event: Finished | Failed | Dead, outcome: Outcome) -> Deed:
    return Deed(event.group, event.receiver, event.stream, event.sequence, outcome)


def _told(events: Sequence[Event]) -> Counter[Deed]:
    """What the recorders were told; by all of them together, each frame once."""
    keys = {(event.stream, event.sequence): event.key for event in events if type(event) is Submitted}
    lanes: dict[tuple[int, str, int], Lanes] = {}
    frames: dict[tuple[int, int], tuple[str, Handled]] = {}
    for event in events:
        if type(event) is Recorded and isinstance(event.frame, Stamp):
            for entry in event.frame.groups:
                slots = sum(member.weight for member in entry.members)
                lanes[event.frame.source, entry.group, entry.since] = Lanes(slots, entry.shard_map)
        elif type(event) is Recorded and isinstance(event.frame, Handled):
            frames[event.frame.source, event.frame.counter] = (event.who, event.frame)
    found: Counter[Deed] = Counter()
    for who, frame in frames.values():
        for run in frame.runs:
            lane = lanes.get((frame.stream, frame.group, run.stamp))
            if lane is not None:
                sequences = _sequences(run, lane, frame.stream, keys)
                found.update(Deed(frame.group, who, frame.stream, q, run.outcome) for q in sequences)
    return found


def _sequences(
    run: HandledRun, lane: Lanes, stream: int, keys: Mapping[tuple[int, int], str | bytes | None]
) -> Iterator[int]:
    """The messages of a lane in a run."""
    for sequence in range(run.first, run.last + 1):
        key = keys.get((stream, sequence)) if lane.shard_map else None
        slot = sequence % lane.slots if key is None else lane.shard_map[shard_of(key)]
        if slot == run.slot:
            yield sequence


def _what(deed: Deed) -> str:
    outcome = Outcome(deed.outcome).name
    return f"{deed.receiver} told of {deed.stream:x}/{deed.sequence} ({deed.group}) as {outcome}"


def _violation(events: Sequence[Event], text: str) -> Violation:
    return Violation(Promise.TOLD, events[-1].at if events else 0.0, text)
