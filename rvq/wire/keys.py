"""The keys of a sealed bus as values. Owns their length and their names; knows no files and seals nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from rvq import limits
from rvq.errors import BusError

KEY_BYTES: Final = 32
"""AES-256."""
KEY_ID_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Key:
    """One key. Its id stands in every datagram, so that nobody tries keys in turn; it says nothing of the secret."""

    secret: bytes = field(repr=False)
    id: bytes = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.secret, bytes) or len(self.secret) != KEY_BYTES:
            raise BusError(f"a key must be {KEY_BYTES} random bytes: make one with `rvq key new FILE`")
        id = blake2b(self.secret, digest_size=KEY_ID_BYTES, person=b"rvq key id").digest()
        object.__setattr__(self, "id", id)

    @property
    def name(self) -> str:
        """Its id for people."""
        return self.id.hex()


class Keys:
    """Those that are live: whatever is sealed with one of them is opened. One is in use: with it we seal ourselves."""

    __slots__ = ("in_use", "live")

    def __init__(self, live: Iterable[Key], in_use: Key | None = None) -> None:
        """In the order in which they came. The first is in use, unless told."""
        self.live: Mapping[bytes, Key] = {key.id: key for key in live}
        self.in_use = in_use or next(iter(self.live.values()))
        if self.in_use.id not in self.live:
            raise BusError(f"key {self.in_use.name} is not among the live ones: add it first")
        if len(self.live) > limits.KEYS_MAX:
            raise BusError(f"{len(self.live)} keys are more than {limits.KEYS_MAX}: drop those that nobody uses")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keys) and (self.in_use, self.live) == (other.in_use, other.live)

    def __hash__(self) -> int:
        return hash((self.in_use, frozenset(self.live)))

    def __repr__(self) -> str:
        return f"<Keys {', '.join(key.name for key in self.live.values())}; {self.in_use.name} in use>"
