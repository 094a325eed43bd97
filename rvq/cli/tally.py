"""Who handled what: lost, handled twice, and whether that is explained. Owns the judgement and how it is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Handled = Mapping[str, Sequence[int]]
"""By receiver: the numbers of the messages that it handled, each as often as it did."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of messages 1 to `sent`."""

    sent: int
    lost: int
    repeated: int
    unexplained: int
    """Repeats that are not of the kind: the killed one handled it and could not say so any more."""
    invented: int
    killed: str

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.unexplained or self.invented)

    def __str__(self) -> str:
        facts = [f"{self.sent:,} sent, {self.sent - self.lost:,} handled, {self.lost:,} lost"]
        if self.invented:
            facts.append(f"{self.invented:,} handled that nobody sent")
        if self.unexplained:
            facts.append(f"{self.unexplained:,} handled again without a reason")
        if not self.repeated:
            facts.append("each exactly once" if self.is_good else "none twice")
        elif not self.unexplained:
            facts.append(
                f"{self.repeated:,} of them twice: {self.killed} had handled them and was killed before it said so"
            )
        return "; ".join(facts) + "."


def judge(sent: int, handled: Handled, killed: str) -> Verdict:
    """Messages were numbered from 1. The killed one may have handled a message once more than was known."""
    times = Counter(number for numbers in handled.values() for number in numbers)
    known = range(1, sent + 1)
    by_killed = Counter(handled.get(killed, ()))
    repeats = {number: count - 1 for number, count in times.items() if count > 1}
    return Verdict(
        sent=sent,
        lost=sum(1 for number in known if number not in times),
        repeated=sum(repeats.values()),
        unexplained=sum(count - (by_killed[number] == 1) for number, count in repeats.items()),
        invented=sum(1 for number in times if number not in known),
        killed=killed,
    )


def table_of(handled: Handled, killed: str) -> str:
    """A line for each receiver, and their sum."""
    by_killed = set(handled.get(killed, ()))
    rows = [("receiver", "handled", "again")]
    for name, numbers in sorted(handled.items()):
        others = by_killed if name != killed else set[int]()
        again = len(numbers) - len(set(numbers) - others)
        rows.append((f"{name} (killed)" if name == killed else name, f"{len(numbers):,}", f"{again:,}"))
    total = sum(len(numbers) for numbers in handled.values())
    again = total - len({number for numbers in handled.values() for number in numbers})
    rows.append(("together", f"{total:,}", f"{again:,}"))
    return "\n".join(f"  {name:<12}{count:>9}{again:>8}" for name, count, again in rows) + "\n"
