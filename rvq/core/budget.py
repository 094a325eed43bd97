"""What strangers may cost. Owns token buckets by source, so that one who floods leaves something for the others."""

from __future__ import annotations

from hashlib import blake2b

from rvq import limits
from rvq.core.machine import Address


class Budget:
    """So many looks per second at what nobody here knows. `secret`: which sources share a bucket is nobody's affair."""

    __slots__ = ("_filled_at", "_secret", "_tokens")

    def __init__(self, secret: bytes, now: float) -> None:
        self._secret = secret
        self._tokens = [float(limits.UNKNOWN_SALTS_BURST)] * limits.UNKNOWN_SALT_BUCKETS
        self._filled_at = [now] * limits.UNKNOWN_SALT_BUCKETS

    def take(self, now: float, source: Address) -> bool:
        """Is there anything left for this source? Then it is one less."""
        digest = blake2b(repr(source).encode(), key=self._secret, digest_size=2).digest()
        bucket = int.from_bytes(digest, "big") % limits.UNKNOWN_SALT_BUCKETS
        grown = max(0.0, now - self._filled_at[bucket]) * limits.UNKNOWN_SALTS_PER_S
        tokens = min(float(limits.UNKNOWN_SALTS_BURST), self._tokens[bucket] + grown)
        self._filled_at[bucket] = now
        self._tokens[bucket] = max(tokens - 1.0, 0.0) if tokens >= 1.0 else tokens
        return tokens >= 1.0
