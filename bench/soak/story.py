"""What happened in a soak, read from what everyone wrote down. Owns putting the logs together; judges nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from bench.soak.chaos import Span
from bench.soak.crew import Crew, Member, Said, effects
from bench.soak.schedule import GROUPS, HOSTS, JOURNAL, LABEL, LEDGER, SENDERS
from rvq.journal import JournalReader, verify
from rvq.journal.messages import messages
from tests.processes.worker import WATCH_S, name_of

Id = tuple[int, int]
"""A message: stream and sequence."""


@dataclass
class Write:
    """A sender was about to send a message."""

    at: float
    sequence: int
    name: str
    key: str
    delay_s: float | None


@dataclass
class Stream:
    """One life of a sender."""

    id: int
    process: str
    host: str
    writes: list[Write] = field(default_factory=list)
    checkpoint: int = 0
    """Up to here everything was done in every group, as the sender knew."""
    end: str = "runs"
    """done, killed, or what else became of it."""
    ended_at: float = float("inf")


@dataclass
class Handling:
    """One message in a receiver's hands."""

    id: Id
    name: str
    process: str
    host: str
    group: str
    start: float
    attempt: int
    inherited: bool
    redelivered: bool
    key: str
    wall: float
    due: float | None
    finish: float | None = None
    outcome: str = "open"
    """finish, failed, cancelled, taken; or open, if its process ended in the middle."""


@dataclass
class Lost:
    """A receiver or a recorder told of messages whose sender is gone."""

    at: float
    process: str
    host: str
    group: str
    ids: list[Id]
    is_certain: bool = True
    """Or they may have been handled by their owner, who was gone before it could say so."""


@dataclass
class Life:
    """One process from its start to its end, and when it stood still by no fault of ours."""

    process: str
    host: str
    began: float
    ended: float
    end: str
    opened: float = float("inf")
    """When it was on the bus: it saw a table."""
    naps: list[tuple[float, float]] = field(default_factory=list)
    steps: list[tuple[float, float]] = field(default_factory=list)
    """(when, by how much) its wall clock was set."""


@dataclass
class Story:
    """All of it."""

    streams: dict[int, Stream] = field(default_factory=dict)
    handlings: list[Handling] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    lives: dict[str, Life] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    effects: list[tuple[Id, str, float]] = field(default_factory=list)
    stored: Counter[tuple[Id, str]] = field(default_factory=Counter)
    """(message, name) in the journal."""
    troubles: list[str] = field(default_factory=list)

    def handled(self, stream: int) -> dict[str, set[int]]:
        """By group, the sequences that were handled to the end; in the journal's group, those that are in it."""
        return self._handled[stream]

    @cached_property
    def _handled(self) -> dict[int, dict[str, set[int]]]:
        found: dict[int, dict[str, set[int]]] = defaultdict(lambda: {group: set() for group in GROUPS})
        for handling in self.handlings:
            if handling.outcome in ("finish", "taken"):
                found[handling.id[0]][handling.group].add(handling.id[1])
        for (stream, sequence), _, _ in self.effects:
            found[stream][LEDGER].add(sequence)
        for (stream, sequence), _ in self.stored:
            found[stream][JOURNAL].add(sequence)
        return found


def parse_id(text: str) -> Id:
    stream, _, sequence = text.partition("-")
    return int(stream, 16), int(sequence)


def tell(crew: Crew, spans: Iterable[Span], troubles: Iterable[str]) -> Story:
    """Everyone's log, the ledger and the journal."""
    story = Story(spans=list(spans), troubles=list(troubles))
    for member in crew.members:
        read_log(story, member.name, member.host, member.read().said, _life(member))
        if "Traceback" in member.words:
            story.troubles.append(f"{member.name} raised: {member.words[member.words.index('Traceback') :][:2000]}")
    story.effects = [(parse_id(id), name, at) for id, name, at in effects(crew.shared)]
    _read_journal(story, crew.shared / "journal")
    return story


def _life(member: Member) -> Life:
    ended = float("inf") if member.ended_at is None else member.ended_at
    return Life(member.name, member.host, member.began, ended, member.end)


def read_log(story: Story, process: str, host: str, said: Iterable[Said], life: Life) -> None:
    """One process's."""
    story.lives[process] = life
    stream: Stream | None = None
    open_here: dict[Id, Handling] = {}
    for event, at, words in said:
        match event, words:
            case "stream", [id]:
                stream = story.streams[int(id, 16)] = Stream(int(id, 16), process, host)
            case "write", [number, name, key, delay]:
                assert stream is not None
                stream.writes.append(Write(at, int(number), name, key, None if delay == "-" else float(delay)))
            case "checkpoint", [number]:
                assert stream is not None
                stream.checkpoint = int(number)
            case "done", ["0"]:
                assert stream is not None
                stream.end, stream.ended_at = "done", at
            case "start", _:
                handling = _handling(process, host, at, words)
                open_here[handling.id] = handling
                story.handlings.append(handling)
            case (("finish" | "failed" | "cancelled" | "taken"), [id]):
                handling = open_here.pop(parse_id(id))
                handling.finish, handling.outcome = at, event
            case (("lost" | "doubtful"), [ids]):
                found = [parse_id(id) for id in ids.split(",")]
                story.lost.append(Lost(at, process, host, HOSTS[host], found, event == "lost"))
            case "table", _:
                life.opened = min(life.opened, at)
            case "nap", [since]:
                life.naps.append((float(since) + WATCH_S, at))
            case "wall", [by]:
                life.steps.append((at, float(by)))
    if host in SENDERS and stream is not None and stream.end != "done":
        stream.end, stream.ended_at = life.end, life.ended


def _handling(process: str, host: str, at: float, words: list[str]) -> Handling:
    id, name, attempt, asked, redelivered, key, wall, due = words
    return Handling(
        id=parse_id(id),
        name=name,
        process=process,
        host=host,
        group=HOSTS[host],
        start=at,
        attempt=int(attempt),
        inherited=asked == "1",
        redelivered=redelivered == "1",
        key=key,
        wall=float(wall),
        due=None if due == "-" else float(due),
    )


def _read_journal(story: Story, root: Path) -> None:
    found = verify(root)
    if not found.is_good:
        story.troubles.append(f"the {JOURNAL} is damaged: {found.findings}")
    for message in messages(JournalReader(root), LABEL):
        story.stored[(message.sender, message.sequence), name_of(message.content.body)] += 1


def by_message(handlings: Iterable[Handling]) -> dict[tuple[str, Id], list[Handling]]:
    """Those of each message in each group, in the order of their starts."""
    found: dict[tuple[str, Id], list[Handling]] = defaultdict(list)
    for handling in sorted(handlings, key=lambda handling: handling.start):
        found[handling.group, handling.id].append(handling)
    return found
