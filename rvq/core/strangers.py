"""Those on the network who are not on this bus: another key, none, or one where this bus has none.

Owns counting them and naming each once. Knows no bytes: whoever reads a datagram says what is wrong with it.
"""

from __future__ import annotations

from rvq import limits
from rvq.core.machine import Address
from rvq.core.stats import Stats

STRANGER = "stranger"
"""Events that begin so are worth a warning."""

SEALED_HERE_PLAIN = "its frames are sealed and this bus has no key: give us the same key file, or it another port"
PLAIN_HERE_SEALED = "its frames are not sealed and this bus has a key: give it the key file, or another port"
OTHER_KEY = "its frames are sealed with key {} which is not in our key file: compare `rvq key ls` on both hosts"


class Strangers:
    """Counts in `stats.strangers`; says each address once, with its fault, in `events`."""

    __slots__ = ("_events", "_named", "_stats")

    def __init__(self, stats: Stats, events: list[str]) -> None:
        self._stats = stats
        self._events = events
        self._named: set[Address] = set()

    def note(self, source: Address, fault: str) -> None:
        self._stats.strangers += 1
        if source in self._named or len(self._named) >= limits.STRANGERS_NAMED_MAX:
            return
        self._named.add(source)
        where = ":".join(map(str, source)) if isinstance(source, tuple) else str(source)
        self._events.append(f"{STRANGER} at {where}: {fault}")
        if len(self._named) == limits.STRANGERS_NAMED_MAX:
            self._events.append(f"{STRANGER}s: no more of them are named; stats.strangers counts on")
