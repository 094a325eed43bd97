"""Sealed datagrams: bytes <-> frames that only holders of a key can read or make. Owns the header, the subkeys and the
counter; whether a datagram is fresh is `core.sealing`'s.

AES-256-GCM of the package `cryptography`, imported when there is a key and not before. All that stands before the
ciphertext is authenticated. A start has a random salt, and with it a key of its own, so a counter is nonce enough.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol

from rvq.errors import BusError, WireError
from rvq.wire.keys import Key

MAGIC: Final = b"rvqs"
"""The first four bytes, where plain frames have `rvq` and 1: so each is recognised on the other's bus."""
VERSION: Final = 1
SALT_BYTES: Final = 16
TAG_BYTES: Final = 16

HEADER: Final = Struct(">4s8s16sBBBxQ")
"""Magic, key id, salt, version, kind, channel, a zero, counter."""
OVERHEAD: Final = HEADER.size + TAG_BYTES
"""What a sealed frame has more than a plain one."""

COUNTER_MAX: Final = 2**48
"""Then this start seals no more: far below where AES-GCM or the field ends, and 170 years at 50,000 frames/s."""

# Where things stand, for those who slice.
WAY: Final = slice(4, 32)
"""Key id, salt, version, kind, channel: all that frames of one way have in common."""
SALT: Final = slice(12, 28)
_NONCE: Final = slice(28, 40)
_BODY: Final = HEADER.size

assert HEADER.size == 40


class SealKind(IntEnum):
    """What is inside."""

    FRAME = 1
    """A frame of the protocol."""
    CHALLENGE = 2
    """A random number: whoever seals with that salt is to show that it is here now."""
    ANSWER = 3
    """That number again, and how far its counter is."""


class Channel(IntEnum):
    """One for each queue on the way: frames of one may overtake those of another. Further ones count on from here."""

    DATA = 1
    CONTROL = 2
    UNICAST = 3


class Header(NamedTuple):
    """What stands before the ciphertext."""

    magic: bytes
    key_id: bytes
    salt: bytes
    version: int
    kind: int
    channel: int
    counter: int


class Cipher(Protocol):
    """What is needed of AES-GCM."""

    def encrypt(self, nonce: bytes, data: Any, associated_data: Any) -> bytes: ...
    def decrypt(self, nonce: bytes, data: Any, associated_data: Any) -> bytes: ...


class Proof(NamedTuple):
    """The body of an ANSWER: the number asked for, how far the counter is, and a number of its own to be answered."""

    nonce: bytes
    counter: int
    asks: bytes


NONCE_BYTES: Final = 16
"""Of the random numbers of CHALLENGE and ANSWER."""
NOTHING_ASKED: Final = bytes(NONCE_BYTES)
_PROOF: Final = Struct(">16sQ16s")


@cache
def _tools() -> tuple[Any, Any, Any, type[Exception]]:
    """What is needed of the package: AESGCM, HKDF, SHA256, InvalidTag."""
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError as error:
        raise BusError(
            "a bus with a key needs the package `cryptography`: pip install 'rvq[seal]' (or leave out the key)"
        ) from error
    return AESGCM, HKDF, SHA256, InvalidTag


def check_tools() -> None:
    """BusError if sealing is not installed."""
    _tools()


def cipher_for(key: Key, salt: bytes, bus: bytes) -> Cipher:
    """The cipher of one start under one key. On another bus it is another one, so nothing can be carried over."""
    AESGCM, HKDF, SHA256, _ = _tools()
    subkey = HKDF(algorithm=SHA256(), length=32, salt=salt, info=b"rvq seal 1 " + bus).derive(key.secret)
    cipher: Cipher = AESGCM(subkey)
    return cipher


def is_sealed(datagram: bytes) -> bool:
    """Does it begin as a sealed datagram does?"""
    return datagram[:4] == MAGIC and len(datagram) >= OVERHEAD


def read_header(datagram: bytes) -> Header:
    """What stands before the ciphertext: not yet known to be true. Raises WireError if it is not a sealed datagram."""
    if len(datagram) < OVERHEAD:
        raise WireError(f"{len(datagram)} bytes are no sealed datagram")
    header = Header._make(HEADER.unpack_from(datagram))
    if header.magic != MAGIC or header.version != VERSION:
        raise WireError("not a sealed datagram of this version")
    return header


def unseal(cipher: Cipher, datagram: bytes) -> bytes | None:
    """What is inside; None if any bit of it is not as it was sealed."""
    try:
        # Hot: a view, so that the ciphertext is not copied once more.
        return cipher.decrypt(datagram[_NONCE], memoryview(datagram)[_BODY:], datagram[:_BODY])
    except (_tools()[3], ValueError):  # or so short that there is not even a nonce
        return None


def unseal_train(cipher: Cipher, datagram: bytes, size: int, counter: int) -> list[bytes] | None:
    """What is inside sealed frames of this size, whose counters go on from this one; None unless all are so."""
    # Hot: what the frames have in common is looked at once. A header that says otherwise is authenticated, and fails.
    view, start, opened = memoryview(datagram), datagram[28:32], []
    decrypt = cipher.decrypt
    try:
        for at in range(0, len(datagram), size):
            body = at + _BODY
            nonce = start + counter.to_bytes(8, "big")
            opened.append(decrypt(nonce, view[body : at + size], view[at:body]))
            counter += 1
    except (_tools()[3], ValueError, OverflowError):
        return None
    return opened


def pack_proof(proof: Proof) -> bytes:
    return _PROOF.pack(*proof)


def read_proof(body: bytes) -> Proof:
    """Raises WireError if it is none."""
    if len(body) != _PROOF.size:
        raise WireError(f"{len(body)} bytes are no answer")
    return Proof._make(_PROOF.unpack(body))


class Sealer:
    """Seals all that one start has to say. One counter for everything, so no number is ever used twice."""

    __slots__ = ("_bus", "_encrypt", "_key", "_prefixes", "counter", "ended", "salt")

    def __init__(self, key: Key, salt: bytes, bus: bytes = b"", counter: int = 0) -> None:
        assert len(salt) == SALT_BYTES
        self.salt = salt
        self.counter = counter
        """Of the last one that was sealed."""
        self.ended = False
        self._bus = bus
        self._key = key
        self._prefixes: dict[tuple[int, int], bytes] = {}
        self._encrypt = cipher_for(key, salt, bus).encrypt

    def use(self, key: Key) -> None:
        """Seal with this key from now on. Salt and counter go on: who knows us still does."""
        if key != self._key:
            self._key = key
            self._prefixes.clear()
            self._encrypt = cipher_for(key, self.salt, self._bus).encrypt

    def seal(self, channel: int, body: Any, kind: int = SealKind.FRAME) -> bytes:
        """One datagram. BusError if the counter is at its end: a number that is used twice gives the key away."""
        counter = self.counter + 1
        self._check_counter(counter)
        self.counter = counter
        prefix = self._prefixes.get((channel, kind)) or self._prefix(channel, kind)
        header = prefix + counter.to_bytes(8, "big")
        return header + self._encrypt(header[_NONCE], body, header)

    def seal_train(self, channel: int, datagram: bytes, size: int) -> bytes:
        """Each frame of a train on its own: the kernel cuts them apart, and one may be lost."""
        # Hot: as `seal`, and everything is put together once.
        prefix = self._prefixes.get((channel, SealKind.FRAME)) or self._prefix(channel, SealKind.FRAME)
        encrypt, view, counter = self._encrypt, memoryview(datagram), self.counter
        parts: list[bytes] = []
        self._check_counter(counter - (-len(datagram) // size))
        for at in range(0, len(datagram), size):
            counter += 1
            header = prefix + counter.to_bytes(8, "big")
            parts += (header, encrypt(header[_NONCE], view[at : at + size], header))
        self.counter = counter
        return b"".join(parts)

    def end(self) -> None:
        """Seal nothing more: another process goes on with this salt and counter."""
        self.ended = True
        self.counter = COUNTER_MAX

    def _check_counter(self, counter: int) -> None:
        if counter > COUNTER_MAX:
            why = "it was opened before a fork" if self.ended else f"it has sealed {COUNTER_MAX:,} datagrams"
            raise BusError(f"this end seals nothing more, since {why}: open another sender or receiver")

    def _prefix(self, channel: int, kind: int) -> bytes:
        prefix = HEADER.pack(MAGIC, self._key.id, self.salt, VERSION, kind, channel, 0)[:-8]
        self._prefixes[channel, kind] = prefix
        return prefix
