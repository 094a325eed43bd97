"""What dead letters look like: a table and a page for people, JSON for scripts. Owns the layout; prints nothing.

What a message says is shown and never obeyed: a control character of it does not reach the terminal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rvq.cli.bodies import json_of
from rvq.dead import DeadLetter, live_label
from rvq.errors import RvqError
from rvq.message import Message

KEY_COLUMNS_MAX = 16
TEXT_COLUMNS_MAX = 120
"""The longest error or body in a table that has no width to keep to."""
TEXT_COLUMNS_MIN = 8
"""A shorter one says nothing: where there is less room, lines are cut."""

NOT_A_LETTER = "not a dead letter"


@dataclass(frozen=True, slots=True)
class Found:
    """A message on the label of the dead, and the letter that it is; None if somebody sent something else there."""

    message: Message
    letter: DeadLetter | None

    @classmethod
    def of(cls, message: Message) -> Found:
        try:
            letter = DeadLetter.from_body(message.body)
        except RvqError:
            return cls(message, None)
        return cls(message, letter if letter.label == live_label(message.label) else None)

    @property
    def id(self) -> str:
        """That of the message that died."""
        return self.message.id if self.letter is None else self.letter.id

    @property
    def at(self) -> float:
        """When it came here."""
        return self.message.sent_at if self.letter is None else self.letter.died_at


# --- for scripts ----------------------------------------------------------------------------------------------------


def facts_of(found: Found) -> dict[str, Any]:
    """`letter` says whether it is one."""
    if found.letter is not None:
        return {"letter": True, **found.letter.as_body()}
    message = found.message
    return {
        "letter": False,
        "id": message.id,
        "label": message.label,
        "body": message.body,
        "key": message.key,
        "headers": message.headers,
        "sent_at": message.sent_at,
    }


def lines_of_json(all_found: Sequence[Found]) -> str:
    return "".join(f"{json_of(facts_of(found))}\n" for found in all_found)


# --- a table --------------------------------------------------------------------------------------------------------


def table_of(all_found: Sequence[Found], columns: int | None, now: datetime) -> str:
    """A line each, of at most so many columns."""
    rows = [("ID", "TRIES", "WHEN", "KEY", "ERROR", "BODY"), *(_row(found, now) for found in all_found)]
    widths = _widths(rows, columns)
    lines = [_line(row, widths) for row in rows]
    return "".join(f"{line if columns is None else cut(line, columns)}\n" for line in lines)


def _row(found: Found, now: datetime) -> tuple[str, ...]:
    letter, message = found.letter, found.message
    when = _short_time(found.at, now)
    if letter is None:
        return found.id, "-", when, _key(message.key), NOT_A_LETTER, one_line(message.body)
    return shown(letter.id), str(letter.attempts), when, _key(letter.key), shown(letter.error), one_line(letter.body)


def _widths(rows: Sequence[Sequence[str]], columns: int | None) -> list[int]:
    """What the fixed ones leave is for the error and the body: each gets what it needs, or half."""
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    widths[3] = min(widths[3], KEY_COLUMNS_MAX)
    error, body = (min(width, TEXT_COLUMNS_MAX) for width in widths[4:])
    if columns is not None:
        room = max(columns - sum(widths[:4]) - 2 * 5, 2 * TEXT_COLUMNS_MIN)
        error = min(error, max(room // 2, room - body))
        body = min(body, room - error)
    return [*widths[:4], error, body]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(padded(cut(text, width), width) for text, width in zip(row, widths, strict=True)).rstrip()


def _short_time(at: float, now: datetime) -> str:
    """Today's by the clock, all others by the day."""
    when = _local(at)
    if when is None:
        return "?"
    return f"{when:%H:%M:%S}" if when.date() == now.astimezone().date() else f"{when:%Y-%m-%d}"


def _key(key: str | bytes | None) -> str:
    return "-" if key is None else one_line(key)


# --- a page ---------------------------------------------------------------------------------------------------------


def page_of(found: Found) -> str:
    """Everything that is known."""
    letter, message = found.letter, found.message
    if letter is None:
        facts = [
            ("id", message.id),
            ("", f"{NOT_A_LETTER}: somebody sent it to {message.label} by hand"),
            ("sent", _long_time(message.sent_at)),
            *_given(message.key, message.headers),
        ]
        return _facts(facts) + _block("body", message.body)
    facts = [
        ("id", letter.id),
        ("label", f"{letter.label} (group {letter.group})"),
        ("attempts", str(letter.attempts)),
        ("sent", _long_time(letter.sent_at)),
        ("died", _long_time(letter.died_at)),
        ("first owner", letter.first_owner),
        ("last owner", letter.last_owner),
        *_given(letter.key, letter.headers),
        ("error", letter.error or "none was given"),
    ]
    trace = _block("traceback", letter.traceback) if letter.traceback else ""
    return _facts(facts) + trace + ("" if letter.lacks_body else _block("body", letter.body))


def _given(key: str | bytes | None, headers: dict[str, Any] | None) -> list[tuple[str, str]]:
    return [("key", "none" if key is None else one_line(key)), ("headers", json_of(headers) if headers else "none")]


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{name:<13}{shown(text)}\n" for name, text in facts)


def _block(name: str, value: Any) -> str:
    """Text as it stands, line by line; bytes and objects as in Python and JSON."""
    text = value if isinstance(value, str) else one_line(value)
    lines = [shown(line.expandtabs()) for line in text.rstrip("\n").split("\n")]
    return f"{name}\n" + "".join(f"    {line}".rstrip() + "\n" for line in lines)


def _long_time(at: float) -> str:
    when = _local(at)
    return f"{at!r} s since 1970" if when is None else f"{when:%Y-%m-%d %H:%M:%S.%f}"[:-3] + f"{when: %z}"


def _local(at: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(at).astimezone()
    except (OverflowError, OSError, ValueError):  # a letter that somebody made up
        return None


# --- texts in columns -----------------------------------------------------------------------------------------------


def one_line(value: Any) -> str:
    """Text as it is, bytes as text where they are, everything else as JSON; nothing in it moves the cursor."""
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return repr(value)
    return shown(value if isinstance(value, str) else json_of(value))


def shown(text: str) -> str:
    """What cannot be printed as Python writes it: a newline as \\n."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def width_of(text: str) -> int:
    """Columns on a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """The start of a text that is too long, with a sign that there is more."""
    if width_of(text) <= columns:
        return text
    room, kept = columns - 1, []
    for character in text:
        room -= _columns(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width_of(text))
