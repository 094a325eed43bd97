"""What will go wrong, and when: drawn from one seed. Owns hosts, faults and their times; starts and breaks nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random

LABEL = "work"
LEDGER, AUDIT, JOURNAL = "ledger", "audit", "journal"
"""The groups: one whose handlers write to a ledger, one that only handles, and the recorders'."""

HOSTS: dict[str, str] = {
    **dict.fromkeys(("a0", "a1", "a2"), LEDGER),
    **dict.fromkeys(("b0", "b1", "b2"), AUDIT),
    **dict.fromkeys(("j0", "j1"), JOURNAL),
    **dict.fromkeys(("s0", "s1", "s2"), "senders"),
}
RIGHT = frozenset({"a2", "b1", "b2", "j1", "s2"})
"""The hosts on the far switch: in a split they are alone."""

GROUPS = (LEDGER, AUDIT, JOURNAL)
SENDERS = tuple(host for host, group in HOSTS.items() if group == "senders")
RECORDERS = tuple(host for host, group in HOSTS.items() if group == JOURNAL)
RECEIVERS = tuple(host for host, group in HOSTS.items() if group in (LEDGER, AUDIT))
EVERYWHERE = "everywhere"

STEP_S_MAX = 2.0
"""How far a wall clock may be set: due times are wall times, so a further one would put off the end by as much."""
STEP_S_FAR = 3 * 86_400.0
"""The same for recorders, where nothing is due: their hours become other hours."""
UPTIME_S_MAX = 10_000_000
"""Of the host that a process finds itself on when it is started again: its monotonic clock is another one."""


class Kind(Enum):
    """What can go wrong."""

    KILL = "kill -9"
    LEAVE = "leave"
    STOP = "SIGSTOP"
    PULL = "cable pulled"
    DEAF = "hears nothing"
    MUTE = "is not heard"
    LOSS = "loss"
    SPLIT = "network split"
    STEP = "clock set"
    SLOW = "slow disk"
    REKEY = "new key"


OF_PROCESS = frozenset({Kind.KILL, Kind.LEAVE, Kind.STOP})
OF_LINK = frozenset({Kind.PULL, Kind.DEAF, Kind.MUTE, Kind.LOSS})
"""One of each of these at a time on a host, but both together: one may be stopped behind a bad link."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong: seconds after the beginning, for how long. What `amount` is depends on the kind:
    percent, seconds, or the age of the host of who comes back."""

    at: float
    kind: Kind
    host: str
    for_s: float = 0.0
    amount: float = 0.0

    @property
    def until(self) -> float:
        return self.at + self.for_s


@dataclass(frozen=True, slots=True)
class Card:
    """A kind of fault, whom it may befall, and for how long."""

    kind: Kind
    hosts: tuple[str, ...]
    least_s: float = 0.0
    most_s: float = 0.0


DECK = (
    Card(Kind.KILL, RECEIVERS, 0.3, 4.0),
    Card(Kind.KILL, RECEIVERS, 0.3, 4.0),
    Card(Kind.KILL, SENDERS, 0.5, 3.0),
    Card(Kind.KILL, RECORDERS, 0.3, 4.0),
    Card(Kind.LEAVE, RECEIVERS + RECORDERS, 0.3, 2.0),
    Card(Kind.LEAVE, SENDERS, 0.3, 2.0),
    Card(Kind.STOP, RECEIVERS, 0.3, 6.0),
    Card(Kind.STOP, RECEIVERS, 1.5, 4.0),
    Card(Kind.STOP, SENDERS, 0.5, 4.0),
    Card(Kind.STOP, RECORDERS, 0.5, 4.0),
    Card(Kind.PULL, (*RECEIVERS, *SENDERS, *RECORDERS), 0.5, 5.0),
    Card(Kind.DEAF, (*RECEIVERS, *SENDERS, *RECORDERS), 0.5, 5.0),
    Card(Kind.MUTE, (*RECEIVERS, *SENDERS, *RECORDERS), 0.5, 5.0),
    Card(Kind.LOSS, tuple(HOSTS), 3.0, 10.0),
    Card(Kind.LOSS, tuple(HOSTS), 3.0, 10.0),
    Card(Kind.SPLIT, (EVERYWHERE,), 0.5, 4.0),
    Card(Kind.STEP, (*RECEIVERS, *SENDERS)),
    Card(Kind.STEP, RECORDERS),
    Card(Kind.SLOW, RECORDERS, 2.0, 6.0),
    Card(Kind.REKEY, (EVERYWHERE,), 8.0, 8.0),
)
"""A round: each once, in another order every time."""

PAUSE_S = 1.4
"""Between two faults, on average: so about three go on at a time, and a round takes half a minute."""
BEGIN_S = 1.0
LOSS_PERCENT = (1, 20)
SLOW_S = (0.05, 0.6)
"""What each sync of a slow disk takes more."""
CALM_S, MOURNING_S = 3.0, 9.0
"""Every other round ends with a sender that dies in peace, and nothing else for so long before and after: what was not
handled must be told as lost then, and no other fault excuses a receiver that does not."""


def draw(seed: int, seconds: float) -> list[Fault]:
    """The faults of that many seconds, by their beginnings. All are over at the end."""
    random = Random(f"soak {seed}")
    faults: list[Fault] = []
    at, number = BEGIN_S, 0
    while at < seconds:
        deck = list(DECK)
        random.shuffle(deck)
        for card in deck:
            fault = _deal(random, card, at, faults)
            if fault is not None and fault.until < seconds:
                faults.append(fault)
            at += random.expovariate(1 / PAUSE_S)
            if at >= seconds:
                break
        number += 1
        if number % 2 == 0:
            at = _in_peace(random, faults, at, seconds)
    return sorted(faults, key=lambda fault: fault.at)


def _deal(random: Random, card: Card, at: float, faults: list[Fault]) -> Fault | None:
    """On a host that is free for it; None if there is none."""
    for_s = round(random.uniform(card.least_s, card.most_s), 3)
    free = [host for host in card.hosts if not any(_clash(other, card.kind, host, at) for other in faults)]
    if not free:
        return None
    host = random.choice(free)
    return Fault(round(at, 3), card.kind, host, for_s, _amount(random, card.kind, host))


def _clash(other: Fault, kind: Kind, host: str, at: float) -> bool:
    if other.host != host or other.until + 0.5 < at:
        return False
    return other.kind is kind or any({other.kind, kind} <= kinds for kinds in (OF_PROCESS, OF_LINK))


def _amount(random: Random, kind: Kind, host: str) -> float:
    match kind:
        case Kind.LOSS:
            return random.randint(*LOSS_PERCENT)
        case Kind.SLOW:
            return round(random.uniform(*SLOW_S), 3)
        case Kind.STEP:
            most = STEP_S_FAR if host in RECORDERS else STEP_S_MAX
            return round(random.uniform(-most, most), 3)
        case Kind.KILL | Kind.LEAVE:
            return random.randint(0, UPTIME_S_MAX)
    return 0.0


def _in_peace(random: Random, faults: list[Fault], at: float, seconds: float) -> float:
    """One sender dies when all else is over. When the next may begin."""
    at = max([at, *(fault.until for fault in faults)]) + CALM_S
    if at + MOURNING_S < seconds:
        host = random.choice(SENDERS)
        amount = _amount(random, Kind.KILL, host)
        faults.append(Fault(round(at, 3), Kind.KILL, host, MOURNING_S, amount))
    return at + MOURNING_S


def schedule_in_words(faults: list[Fault]) -> Iterator[str]:
    """A line for each."""
    for fault in faults:
        amount = f" ({fault.amount:g})" if fault.amount else ""
        yield f"{fault.at:8.3f} s  {fault.host:<10} {fault.kind.value}{amount} for {fault.for_s:g} s"
