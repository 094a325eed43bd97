"""A soak by hand: what each process would have written down, and the faults that befell it."""

from __future__ import annotations

from bench.soak.chaos import Span
from bench.soak.crew import Said
from bench.soak.judge import Account, judge
from bench.soak.schedule import Kind
from bench.soak.story import Life, Story, read_log

STREAM = 0xA1
FOREVER = float("inf")


class Book:
    """All is well, unless told: `count` messages of one sender, handled once in each group, in order."""

    def __init__(self, count: int = 4, keys: int = 2) -> None:
        self.count, self.keys = count, keys
        self.logs: dict[str, list[Said]] = {"s0.0": [], "a0.0": [], "a1.0": [], "b0.0": [], "b1.0": []}
        self.ends: dict[str, tuple[str, float]] = {}
        self.spans: list[Span] = []
        self.effects: list[tuple[int, str, float]] = []
        self.stored = list(range(1, count + 1))
        self.troubles: list[str] = []
        self.said("s0.0", 0.0, "stream", f"{STREAM:016x}")
        for process in ("a0.0", "a1.0", "b0.0", "b1.0"):
            self.said(process, 0.0, "table", 2)
        for sequence in range(1, count + 1):
            self.said("s0.0", sequence, "write", sequence, name(sequence), self.key(sequence), "-")
            self.handled("a0.0", sequence, sequence + 0.1)
            self.handled("b0.0", sequence, sequence + 0.1)
        self.said("s0.0", 100.0, "done", 0)

    def key(self, sequence: int) -> str:
        return f"k{sequence % self.keys}" if self.keys else "-"

    def said(self, process: str, at: float, event: str, *words: object) -> None:
        self.logs.setdefault(process, []).append(Said(event, float(at), [str(word) for word in words]))

    def without(self, process: str, *events: str, of: int | None = None) -> None:
        """These lines were never written; `of` a message, or all of them."""
        id = None if of is None else id_of(of)
        self.logs[process] = [
            said for said in self.logs[process] if said.event not in events or (id is not None and id not in said.words)
        ]
        if of is not None and "finish" in events and process.startswith("a"):
            self.effects = [effect for effect in self.effects if effect[:2] != (of, process)]

    def started(
        self,
        process: str,
        sequence: int,
        at: float,
        *,
        again: bool = False,
        wall: float = 0.0,
        due: object = "-",
        body: str = "",
        attempt: int = 1,
    ) -> None:
        facts = (attempt, int(again), int(again), self.key(sequence), wall, due)
        self.said(process, at, "start", id_of(sequence), body or name(sequence), *facts)

    def finished(self, process: str, sequence: int, at: float, outcome: str = "finish") -> None:
        self.said(process, at, outcome, id_of(sequence))
        if process.startswith("a") and outcome == "finish":
            self.effects.append((sequence, process, at))

    def handled(self, process: str, sequence: int, at: float, *, again: bool = False) -> None:
        self.started(process, sequence, at, again=again)
        self.finished(process, sequence, at + 0.1)

    def befell(self, kind: Kind, host: str, since: float, to: float, process: str = "", amount: float = 0.0) -> None:
        self.spans.append(Span(kind, host, since, to, amount, process))

    def killed(self, process: str, at: float) -> None:
        self.ends[process] = ("killed", at)
        self.befell(Kind.KILL, process.partition(".")[0], at, at, process)
        if process.startswith("s"):
            self.without(process, "done")

    def story(self) -> Story:
        story = Story(spans=self.spans, troubles=self.troubles)
        for process, said in self.logs.items():
            end, at = self.ends.get(process, ("left", FOREVER))
            host = process.partition(".")[0]
            said = sorted(said, key=lambda said: said.at)
            read_log(story, process, host, said, Life(process, host, 0.0, at, end))
        story.effects = [((STREAM, sequence), process, at) for sequence, process, at in self.effects]
        story.stored.update(((STREAM, sequence), name(sequence)) for sequence in self.stored)
        return story

    def judged(self) -> Account:
        return judge(self.story())

    def found(self) -> list[str]:
        """What the judge says."""
        return [f"{violation.promise.value}: {violation.text}" for violation in self.judged().violations]


def name(sequence: int) -> str:
    return f"s0.0/{sequence}"


def id_of(sequence: int) -> str:
    return f"{STREAM:016x}-{sequence}"
