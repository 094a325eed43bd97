"""What a sending and a receiving end have in common: what they say, and when they want to be woken."""

from __future__ import annotations

import math

from rvq.core.machine import Address, Datagram, Route, Target
from rvq.core.naps import Naps
from rvq.core.stats import Stats
from rvq.core.strangers import SEALED_HERE_PLAIN, Strangers
from rvq.wire.codec import encode_control
from rvq.wire.frames import Control
from rvq.wire.seal import is_sealed

PROMPT_S = 0.005
"""Heartbeats out of turn are this far apart at least."""
GOODBYES = 2
"""Said so often, since one may be lost; if all are, the others find out by the silence."""


class End:
    """One end of a label. Once it has ended it says nothing more and is not woken again."""

    def __init__(self, tag: int, nap_slack: float, now: float) -> None:
        self.stats = Stats()
        self.events: list[str] = []
        self._strangers = Strangers(self.stats, self.events)
        self._tag = tag
        self._ended = False
        self._out: list[Datagram] = []
        self._deadline = now
        self._naps = Naps(nap_slack)

    def next_deadline(self) -> float:
        return self._deadline

    def take_outgoing(self) -> list[Datagram]:
        outgoing, self._out = self._out, []
        return outgoing

    def _say(self, target: Target, frame: Control) -> None:
        self._out.append((target, encode_control(frame, self._tag)))

    def _refuse(self, datagram: bytes, source: Address) -> None:
        """It is no frame of this bus: counted, and if it is one of a sealed bus, said."""
        if is_sealed(datagram):
            self._strangers.note(source, SEALED_HERE_PLAIN)
        else:
            self.stats.bad_frames += 1

    def _wake_at(self, when: float) -> None:
        """The next thing is due then."""
        self._deadline = when
        self._naps.expect(when)

    def _at_latest(self, when: float) -> None:
        """Something is due then, perhaps before anything else."""
        if when < self._deadline and not self._ended:
            self._wake_at(when)

    def _say_goodbye(self, goodbye: Control) -> None:
        """The last words."""
        for _ in range(GOODBYES):
            self._say(Route.CONTROL, goodbye)
        self._ended = True
        self._deadline = math.inf
