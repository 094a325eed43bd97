"""What doctors say to each other: bytes <-> words, sealed on a sealed bus. Owns their form; knows no sockets.

plain   = "rvqd", version 1, length of the body, body in msgpack, zeros up to the size that is wanted
sealed  = that, sealed as frames are, under subkeys of its own: no word of a doctor is ever a frame, nor a frame a word
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from secrets import token_bytes
from struct import Struct
from typing import Any, Final

import msgpack

from rvq.bus import Bus
from rvq.core.strangers import OTHER_KEY, PLAIN_HERE_SEALED, SEALED_HERE_PLAIN
from rvq.errors import WireError
from rvq.wire.keys import Key, Keys
from rvq.wire.seal import OVERHEAD, SALT_BYTES, Channel, Cipher, Sealer, cipher_for, is_sealed, read_header, unseal

MAGIC: Final = b"rvqd"
VERSION: Final = 1
_HEAD: Final = Struct(">4sBH")

WORD_BYTES_MIN: Final = 224
"""Words that ask for an answer are padded to this, so that no answer is longer than its question."""

TEXT_CHARS_MAX: Final = 64
"""Of a host's name or a key's."""

STARTS_MAX: Final = 64
"""Doctors whose subkeys are kept: more than there are hosts in anyone's hurry."""

OTHER_BUS: Final = "it has our key and another address range or port: give all the same --address and --port"


class Kind(IntEnum):
    CALL = 1
    """Who is there?"""
    HERE = 2
    """I am."""
    PROBE = 3
    """Say that again."""
    ECHO = 4
    ASK = 5
    """What did you hear of me?"""
    REPORT = 6
    BYE = 7
    """I want to know nothing more."""


INTRODUCTION: Final = (str, int, int, str, bool)
"""Host, process, MTU, the key in use, whether it is asking too."""

SHAPES: Final[dict[Kind, tuple[type, ...]]] = {
    Kind.CALL: INTRODUCTION,
    Kind.HERE: INTRODUCTION,
    Kind.PROBE: (int, bool),  # phase, whether to answer uncut
    Kind.ECHO: (int, float, float),  # phase, when it was heard, when it was answered: by the wall clock
    Kind.ASK: (int,),  # phase
    Kind.REPORT: (int, int, int),  # phase, how many probes were heard, how large the largest was
    Kind.BYE: (),
}


@dataclass(frozen=True, slots=True)
class Word:
    """One datagram. number: of a question, which its answer repeats."""

    kind: Kind
    source: int
    to: int
    """0: all."""
    number: int
    facts: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Stranger:
    """Somebody was heard who is not on this bus; why not."""

    fault: str


class Speech:
    """Says and understands words as this bus needs it. keys: None on a plain bus."""

    def __init__(self, bus: Bus, keys: Keys | None) -> None:
        self._keys = keys
        self._name = bus.name + b" doctor"
        self._sealer = Sealer(keys.in_use, token_bytes(SALT_BYTES), self._name) if keys is not None else None
        self._ciphers: dict[tuple[bytes, bytes], Cipher] = {}

    @property
    def key_name(self) -> str:
        """Of the key in use; empty without one."""
        return self._keys.in_use.name if self._keys is not None else ""

    def say(self, word: Word, size: int = 0) -> bytes:
        """A datagram of this size, or as large as the word if that is larger."""
        body: bytes = msgpack.packb([word.kind, word.source, word.to, word.number, list(word.facts)])
        plain = _HEAD.pack(MAGIC, VERSION, len(body)) + body
        if self._sealer is None:
            return plain.ljust(size, b"\0")
        return self._sealer.seal(Channel.UNICAST, plain.ljust(size - OVERHEAD, b"\0"))

    def hear(self, datagram: bytes) -> Word | Stranger | None:
        """None: it is no doctor's word."""
        if is_sealed(datagram):
            return self._open(datagram)
        word = parse(datagram)
        return Stranger(PLAIN_HERE_SEALED) if word is not None and self._keys is not None else word

    def _open(self, datagram: bytes) -> Word | Stranger | None:
        if self._keys is None:
            return Stranger(SEALED_HERE_PLAIN)
        try:
            header = read_header(datagram)
        except WireError:
            return None
        key = self._keys.live.get(header.key_id)
        if key is None:
            return Stranger(OTHER_KEY.format(header.key_id.hex()))
        plain = unseal(self._cipher(key, header.salt), datagram)
        return Stranger(OTHER_BUS) if plain is None else parse(plain)

    def _cipher(self, key: Key, salt: bytes) -> Cipher:
        place = (key.id, salt)
        cipher = self._ciphers.get(place)
        if cipher is None:
            if len(self._ciphers) >= STARTS_MAX:
                del self._ciphers[next(iter(self._ciphers))]
            cipher = self._ciphers[place] = cipher_for(key, salt, self._name)
        return cipher


def parse(plain: bytes) -> Word | None:
    """The word, or None if it is none: anybody may have sent it."""
    if len(plain) < _HEAD.size:
        return None
    magic, version, length = _HEAD.unpack_from(plain)
    body = plain[_HEAD.size : _HEAD.size + length]
    if magic != MAGIC or version != VERSION or len(body) != length:
        return None
    try:
        kind, source, to, number, facts = msgpack.unpackb(body)
        shape = SHAPES[Kind(kind)]
    except Exception:  # msgpack has many ways to say no, and none of them is ours to tell apart
        return None
    if not all(_is_number(value) for value in (source, to, number)) or not isinstance(facts, list):
        return None
    if len(facts) != len(shape) or not all(_is_fact(value, kind) for value, kind in zip(facts, shape, strict=True)):
        return None
    return Word(Kind(kind), source, to, number, tuple(_harmless(value) for value in facts))


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**64


def _is_fact(value: object, kind: type) -> bool:
    if kind is float:
        return type(value) is float and math.isfinite(value)
    return _is_number(value) if kind is int else type(value) is kind


def _harmless(value: Any) -> Any:
    """A text that may be shown on a terminal."""
    if not isinstance(value, str):
        return value
    return "".join(character if character.isprintable() else "?" for character in value[:TEXT_CHARS_MAX])
