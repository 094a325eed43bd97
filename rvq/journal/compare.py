"""Two journals as two copies of one history. Owns what one has and the other lacks, by message; reads each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from rvq.journal.entries import Entry
from rvq.journal.reader import JournalReader
from rvq.journal.runs import RunSet


class Ids(NamedTuple):
    """Messages of one sender, numbered in a row."""

    sender: int
    first: int
    last: int


KeyOf = Callable[[Entry], Iterable[Ids]]
"""Which messages an entry holds. None for control and notes: what is no message is not compared."""


@dataclass(slots=True)
class Compared:
    """For each label: messages in both, and those in only one."""

    both: int = 0
    only_a: list[tuple[str, Ids]] = field(default_factory=list)
    only_b: list[tuple[str, Ids]] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        return not self.only_a and not self.only_b


def compare(a: JournalReader, b: JournalReader, key_of: KeyOf) -> Compared:
    """Label by label. Needs memory for the holes in what each sender's messages are, not for the messages.

    Up to what is synced when a label is reached; messages that are still on their way to one of two live recorders
    differ, so compare what is over.
    """
    compared = Compared()
    for label in sorted({*a.labels(), *b.labels()}):
        of_a, of_b = _runs_of(a, label, key_of), _runs_of(b, label, key_of)
        empty = RunSet()
        for sender in sorted({*of_a, *of_b}):
            in_a, in_b = of_a.get(sender, empty), of_b.get(sender, empty)
            missing = [Ids(sender, *run) for run in in_a.without(in_b)]
            compared.only_a += [(label, ids) for ids in missing]
            compared.only_b += [(label, Ids(sender, *run)) for run in in_b.without(in_a)]
            compared.both += len(in_a) - sum(last - first + 1 for _, first, last in missing)
    return compared


def _runs_of(reader: JournalReader, label: str, key_of: KeyOf) -> dict[int, RunSet]:
    runs: dict[int, RunSet] = {}
    tail = reader.tail(label)
    for chain, start in reader.head(label).items():
        for entry in reader.entries(label, start, tail[chain]):
            for sender, first, last in key_of(entry):
                runs.setdefault(sender, RunSet()).add(first, last)
    return runs
