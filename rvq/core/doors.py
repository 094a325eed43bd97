"""How much one may say here, and how much is said in answer. Owns what each source has left of both.

Nobody is kept out: a stranger may be the next member. But he does not take the time that those need with whom this end
works, and what he is sent in answer has a bound. Knows no frames.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from random import Random

from rvq import limits
from rvq.core.budget import Bucket, Budget
from rvq.core.machine import Address


class Doors:
    """One end's. `random` is only looked at: what it would give next is nobody's affair.

    per_s: what each of those with whom this end works may say.
    """

    __slots__ = ("_all_strangers", "_answers", "_answers_to_all", "_known", "_per_s", "_strangers")

    def __init__(self, random: Random, now: float, per_s: float) -> None:
        secret = copy(random).randbytes(16)
        self._per_s = per_s
        self._known: dict[Address, tuple[Bucket, Bucket]] = {}
        """Those with whom this end works: what they may say, and be sent."""
        self._strangers = Budget(
            secret,
            now,
            per_s=limits.STRANGER_FRAMES_PER_S,
            burst=limits.STRANGER_FRAMES_BURST,
            buckets=limits.STRANGER_BUCKETS,
        )
        self._all_strangers = Bucket(now, limits.STRANGERS_FRAMES_PER_S, limits.STRANGERS_FRAMES_PER_S)
        self._answers = Budget(
            secret, now, per_s=limits.STRANGER_REPAIR_BYTES_PER_S, burst=limits.STRANGER_REPAIR_BYTES_BURST
        )
        self._answers_to_all = Bucket(now, limits.STRANGERS_REPAIR_BYTES_PER_S, limits.STRANGERS_REPAIR_BYTES_PER_S)

    def know(self, now: float, addresses: Iterable[Address]) -> None:
        """These are all with whom this end works."""
        before = self._known
        self._known = {address: before.get(address) or self._buckets(now) for address in addresses}

    def knows(self, source: Address) -> bool:
        return source in self._known

    def admits(self, now: float, source: Address, size: int) -> bool:
        """May it say so much more?"""
        cost = 1.0 + size // limits.BYTES_PER_FRAME
        known = self._known.get(source)
        if known is not None:
            return known[0].take(now, cost)
        return self._strangers.take(now, source, cost) and self._all_strangers.take(now, cost)

    def may_send(self, now: float, target: Address, size: int) -> bool:
        """May it be sent so much more in answer?"""
        known = self._known.get(target)
        if known is not None:
            return known[1].take(now, size)
        return self._answers.take(now, target, size) and self._answers_to_all.take(now, size)

    def __len__(self) -> int:
        return len(self._known)

    def _buckets(self, now: float) -> tuple[Bucket, Bucket]:
        said = Bucket(now, self._per_s, 2 * self._per_s)
        return said, Bucket(now, limits.MEMBER_REPAIR_BYTES_PER_S, limits.MEMBER_REPAIR_BYTES_BURST)
