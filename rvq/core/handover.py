"""Giving work to who has none. Owns when a receiver hands over, how much of it, and to whom.

Everybody has the frames, so nothing is sent again: the owner stops before a sequence of its lane and asks the sender to
stamp what is behind it as another's. Until then nobody starts it, and from then on only the other one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from rvq.core.membership import Peer
from rvq.wire.frames import Member

BEATS = 3
"""Heartbeats for which messages must have waited in line, while another receiver was idle."""
ASK_S = 0.1
"""Pause between requests to the sender: a stamp may be lost on its way."""
OPEN_STAMPS_MAX = 64
"""With so many stamps open, nothing is handed over: each time makes one more, and one message that is due in an hour
keeps all that come after it. Far below what a sender grants, so what was asked for is never refused."""


class Patience:
    """How long there has been more in line than one gets round to."""

    __slots__ = ("_beats",)

    def __init__(self) -> None:
        self._beats = 0

    def is_over(self, unstarted: int) -> bool:
        """Asked at each heartbeat."""
        self._beats = self._beats + 1 if unstarted > 1 else 0
        return self._beats >= BEATS

    def renew(self) -> None:
        self._beats = 0


def idle_peer(members: Iterable[Member], peers: Mapping[int, Peer], random: Random) -> int | None:
    """One of the members that has nothing to do; None if all are busy or about to leave."""
    idle = [m.id for m in members if (peer := peers.get(m.id)) is not None and not peer.load and not peer.leaving]
    return random.choice(idle) if idle else None
