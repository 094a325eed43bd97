"""Good bytes made bad: one thing changed, or several. Owns how; what is good is the corpus's."""

from __future__ import annotations

from random import Random

NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
"""Numbers at which something may overflow."""
HEADS = (
    b"\xdc",
    b"\xdd\xff\xff\xff\xff",
    b"\xc1",
    b"\xde",
    b"\x90",
    b"\x9f",
    b"\xc7",
    b"\xcf" + bytes(8),
    b"[[",
    b"\xf0\x90",
)
"""Bytes that mean something to msgpack, JSON and UTF-8."""


def bend(random: Random, pool: list[bytes]) -> bytes:
    """One of these, changed in a few places; now and then two of them in one, or noise."""
    data = bytearray(random.choice(pool))
    if random.random() < 0.05:
        data = bytearray(random.randbytes(random.choice((0, 1, 10, 60, 300))))
    for _ in range(random.choice((0, 1, 1, 1, 2, 3, 8))):
        _change(random, data, pool)
    return bytes(data)


def _change(random: Random, data: bytearray, pool: list[bytes]) -> None:
    at = random.randrange(len(data) + 1)
    match random.randrange(8):
        case 0 if at < len(data):
            data[at] ^= 1 << random.randrange(8)
        case 1 if at < len(data):
            data[at] = random.randrange(256)
        case 2:
            del data[at : at + random.choice((1, 2, 4, 8, 100))]
        case 3:
            data[at:at] = random.randbytes(random.choice((1, 2, 4, 8, 40)))
        case 4:
            size = random.choice((1, 2, 4, 8))
            data[at : at + size] = (random.choice(NUMBERS) % 256**size).to_bytes(size, "big")
        case 5:
            other = random.choice(pool)
            data[at:] = other[random.randrange(len(other) + 1) :]
        case 6:
            data[at:at] = random.choice(HEADS)
        case _:
            end = min(len(data), at + random.choice((1, 4, 30)))
            data[at:at] = data[at:end] * random.choice((1, 2, 50))
