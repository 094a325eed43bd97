"""A world as scenarios want it: one sender, a few receivers known by name, and questions about what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rvq.core.table import slots_of
from rvq.sim import Link, ReceiverProcess, SenderProcess, Verdict, World
from rvq.sim.history import Done, Finished, Started, Submitted
from rvq.sim.mutants import build_named
from rvq.timings import Timings
from rvq.wire.records import shard_of

LABEL = "work"
TIMINGS = Timings()

SLOWEST = 1.05
"""A duration by the slowest clock of a world, as true time."""

LEASE_OVER_S = TIMINGS.lease * SLOWEST
"""Nobody starts anything when it has been without an echo for this long."""

STRUCK_OUT_S = (TIMINGS.expiry + TIMINGS.heartbeat) * SLOWEST + 0.05
"""From the last heartbeat that is heard to the stamp that strikes out: expiry, the sender's next heartbeat, the way."""

DEAF_OUT_S = STRUCK_OUT_S + TIMINGS.expiry * SLOWEST
"""The same for one that is only deaf: for an `expiry` its heartbeats still speak of a recent one of the sender's."""

TAKEN_OVER_S = 3.0
"""What a dead receiver left is handled after this long: struck out, the rest of the wait, one question."""

PROMPT_S = 0.15
"""A message that nothing stands in the way of is started within this: handling takes 5 ms on average."""

BUSY_S = 0.5
"""The same for someone who has just inherited a few dozen messages."""

KEYS = 50
"""Of a sender with keys: so many that each of three receivers has about its share of them."""


class Stage:
    """`a`, `b` and `c` are receivers in the order of their ids, so `a` is the keeper; `s` sends all the time."""

    def __init__(
        self,
        seed: int,
        *,
        names: str = "abc",
        keyed: bool = False,
        messages: int = 600,
        rate: float = 60.0,
        handler: Callable[[Any], float | None] | None = None,
        link: Link | None = None,
        settle_s: float = 1.5,
        verbose: int = 1,
        mutant: str | None = None,
        **receiver_options: Any,
    ) -> None:
        self.world = World(seed, link=link, verbose=verbose, build=build_named(mutant))
        self.handler = handler
        self.receiver_options = receiver_options
        self.keyed = keyed
        for name in names:
            self.join(name)
        self.s = self.sender("s", messages=messages, rate=rate)
        if names:
            self.run(settle_s)
            self.t0 = self.world.now
            assert self.in_force() == set(names), "everyone is in before the scenario begins"
            assert not keyed or self.with_keys() == set(names), "everyone has keys: it matters who is out"

    # --- building -------------------------------------------------------------------------------------------------

    def join(self, name: str, **options: Any) -> ReceiverProcess:
        """Ids follow the alphabet: 100 for a, 200 for b. `a2` comes between them."""
        id = 100 * (ord(name[0]) - ord("a") + 1) + int(name[1:] or 0)
        return self.world.receiver(
            LABEL, name=name, id=id, **{"handler": self.handler, **self.receiver_options, **options}
        )

    def sender(self, name: str, *, messages: int = 600, rate: float = 60.0, burst: int = 1) -> SenderProcess:
        keys = KEYS if self.keyed else 0
        return self.world.sender(LABEL, name=name, messages=messages, rate=rate, burst=burst, keys=keys)

    def __getitem__(self, name: str) -> ReceiverProcess:
        return next(receiver for receiver in self.world.receivers if receiver.name == name)

    def others(self, *names: str) -> list[Any]:
        return [process for process in self.world.processes if process.alive and process.name not in names]

    # --- running --------------------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        self.world.run(until=self.world.now + seconds)

    def run_until(self, happened: Callable[[], bool], timeout: float) -> float:
        """Go on until something happened. When it did; fails if it does not within `timeout`."""
        deadline = self.world.now + timeout
        while not happened():
            assert self.world.now < deadline, f"did not happen within {timeout} s\n" + self.told()
            self.world.run(until=self.world.now + 0.01)
        return self.world.now

    def end(self) -> Verdict:
        """Go on until everything is done, a little longer, and judge."""
        assert self.world.settle(), "not done after a minute\n" + self.told()
        self.run(1.0)
        verdict = self.world.verdict()
        assert verdict.ok, f"{verdict}\n{self.told()}"
        return verdict

    def told(self) -> str:
        return "\n".join(line for line in self.world.story.lines if " starts " not in line)

    # --- what happened --------------------------------------------------------------------------------------------

    def names(self, ids: Iterable[int]) -> set[str]:
        names = {process.id: process.name for process in self.world.processes}
        return {names[id] for id in ids}

    def in_force(self, group: str = "default") -> set[str]:
        """The members of a group by the newest stamp."""
        stamps = self.s.stamps
        return set() if not stamps else self._members(stamps[-1][1], group)

    def with_keys(self) -> set[str]:
        """Those who have keys by the newest stamp."""
        (entry,) = self.s.stamps[-1][1].groups
        slots = slots_of(entry.members)
        return self.names({slots[entry.shard_map[shard_of(f"key-{n}")]] for n in range(KEYS)})

    def _members(self, stamp: Any, group: str = "default") -> set[str]:
        return next((self.names(m.id for m in entry.members) for entry in stamp.groups if entry.group == group), set())

    def switches(self, since: float = -1.0, group: str = "default") -> list[tuple[float, int, set[str]]]:
        """(when, from which sequence, members) of each stamp after a time."""
        return [(at, stamp.at, self._members(stamp, group)) for at, stamp in self.s.stamps if at > since]

    def struck_out(self, name: str, since: float) -> tuple[float, int]:
        """(when, from which sequence on) a receiver was no longer a member, the first time after `since`."""
        return next(((at, first) for at, first, members in self.switches(since) if name not in members))

    def let_in(self, name: str, since: float) -> tuple[float, int]:
        return next(((at, first) for at, first, members in self.switches(since) if name in members))

    def starts(self, *names: str, since: float = -1.0, until: float = 1e9, group: str | None = None) -> list[Started]:
        return [
            event
            for event in self.world.history
            if isinstance(event, Started)
            and since < event.at <= until
            and (not names or event.receiver in names)
            and group in (None, event.group)
        ]

    def handled_by(self, *names: str, since: float = -1.0, until: float = 1e9) -> set[int]:
        """Sequences (of a world with one sender) that these receivers started."""
        return {start.sequence for start in self.starts(*names, since=since, until=until)}

    def finishes(self, *names: str, since: float = -1.0) -> list[Finished]:
        return [
            event
            for event in self.world.history
            if isinstance(event, Finished) and event.at > since and (not names or event.receiver in names)
        ]

    def done_at(self) -> dict[int, float]:
        return {event.sequence: event.at for event in self.world.history if isinstance(event, Done)}

    def submitted(self, since: float = -1.0, until: float = 1e9) -> list[Submitted]:
        return [e for e in self.world.history if isinstance(e, Submitted) and since < e.at <= until]

    def delay_max(self, since: float, until: float = 1e9, group: str = "default") -> float:
        """The longest that a message submitted in this time waited for its start."""
        first: dict[tuple[int, int], float] = {}
        for start in self.starts(group=group):
            first.setdefault((start.stream, start.sequence), start.at)
        return max((first[m.stream, m.sequence] - m.at for m in self.submitted(since, until)), default=0.0)

    def repeats(self) -> set[int]:
        """Sequences that were started more than once."""
        seen: set[int] = set()
        return {start.sequence for start in self.starts() if start.sequence in seen or seen.add(start.sequence)}

    def tables(self) -> dict[str, Any]:
        """The newest table that each live receiver belongs to."""
        return {r.name: r.machine.table for r in self.world.live_receivers()}
