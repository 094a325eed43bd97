"""What strangers may cost. Owns token buckets by source, so that one who floods leaves something for the others."""

from __future__ import annotations

from hashlib import blake2b

from rvq import limits
from rvq.core.machine import Address


class Bucket:
    """Tokens that grow back. Holds `burst` of them at most."""

    __slots__ = ("_burst", "_filled_at", "_per_s", "tokens")

    def __init__(self, now: float, per_s: float, burst: float) -> None:
        self.tokens = burst
        self._filled_at = now
        self._per_s, self._burst = per_s, burst

    def take(self, now: float, cost: float = 1.0) -> bool:
        """Is there so much left? Then it is so much less."""
        if now > self._filled_at:
            self.tokens = min(self._burst, self.tokens + (now - self._filled_at) * self._per_s)
        self._filled_at = now
        if self.tokens < cost:
            return False
        self.tokens -= cost
        return True


class Budget:
    """So many looks per second at what nobody here knows. `secret`: which sources share a bucket is nobody's affair."""

    __slots__ = ("_buckets", "_secret")

    def __init__(
        self,
        secret: bytes,
        now: float,
        *,
        per_s: float = limits.UNKNOWN_SALTS_PER_S,
        burst: float = limits.UNKNOWN_SALTS_BURST,
        buckets: int = limits.UNKNOWN_SALT_BUCKETS,
    ) -> None:
        self._secret = secret
        self._buckets = [Bucket(now, per_s, float(burst)) for _ in range(buckets)]

    def take(self, now: float, source: Address, cost: float = 1.0) -> bool:
        """Is there anything left for this source? Then it is so much less."""
        digest = blake2b(repr(source).encode(), key=self._secret, digest_size=2).digest()
        return self._buckets[int.from_bytes(digest, "big") % len(self._buckets)].take(now, cost)
