"""The name of one message in one group, as a row. Owns what may be a mark; knows no database."""

from __future__ import annotations

from typing import NamedTuple

from rvq.errors import LedgerError
from rvq.names import check_group, check_label


class Mark(NamedTuple):
    """Names one message in one group. A ledger that has it knows: this group is done with this message."""

    label: str
    group: str
    sender: int
    sequence: int


Row = tuple[str, str, int, int]


def row_of(mark: Mark) -> Row:
    """The mark as both databases store it; BadLabel or LedgerError for one that no message can have.

    Ids are 64 bits without a sign and database integers have one, so the upper half is stored as negative numbers. In
    hexadecimal both look the same: `to_hex(sender)` in PostgreSQL, `printf('%x', sender)` in SQLite.
    """
    label, group, sender, sequence = mark
    return (
        check_label(label),
        check_group(group),
        _signed(sender, "sender"),
        _signed(sequence, "sequence"),
    )


def _signed(number: object, what: str) -> int:
    if type(number) is not int or not 0 <= number < 1 << 64:
        raise LedgerError(f"{what} {number!r} of a mark is not a number of 64 bits: take that of the message")
    return number - (1 << 64) if number >> 63 else number
