"""Who keeps a journal of the label, in whatever group. Owns where they are told what was done, and for how long."""

from __future__ import annotations

from rvq.core.machine import Address
from rvq.limits import RECORDERS_MAX


class Recorders:
    """The recorders that were heard lately."""

    __slots__ = ("_expiry", "_known")

    def __init__(self, expiry: float) -> None:
        self._expiry = expiry
        self._known: dict[int, tuple[Address, float]] = {}

    def hear(self, now: float, id: int, address: Address) -> None:
        """One said that it is there. If there are too many, it has to wait until one is silent."""
        if id in self._known:
            if self._known[id][0] != address:
                return  # somebody else in its name
        elif len(self._known) >= RECORDERS_MAX or address in self.addresses:
            return
        self._known[id] = (address, now + self._expiry)

    def forget(self, id: int, address: Address) -> None:
        """It said goodbye."""
        if id in self._known and self._known[id][0] == address:
            del self._known[id]

    def expire(self, now: float) -> None:
        """Whoever was silent for too long is gone."""
        for id in [id for id, (_, until) in self._known.items() if until <= now]:
            del self._known[id]

    def forgive(self, nap: float) -> None:
        """I slept: nobody was silent in that time."""
        self._known = {id: (address, until + nap) for id, (address, until) in self._known.items()}

    @property
    def addresses(self) -> list[Address]:
        return [address for address, _ in self._known.values()]

    def __len__(self) -> int:
        return len(self._known)

    def check_invariants(self) -> None:
        assert len(self._known) <= RECORDERS_MAX
