"""Lines to message bodies, and messages to lines. Owns what text, bytes and objects look like on either side."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NoReturn

from rvq.cli.command import WrongUse
from rvq.message import Message

Key = str | bytes
Keyed = tuple[Key | None, list[Any]]
"""Bodies in a row that have the same key, or none."""


# --- from lines -----------------------------------------------------------------------------------------------------


def text_of(line: bytes) -> str | bytes:
    """Text if it is UTF-8, else the bytes as they are."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line


def texts_of(lines: bytes) -> list[str | bytes]:
    """The bodies of many lines. Hot: all are decoded in one go where that can be."""
    try:
        return [*lines.decode().split("\n")]
    except UnicodeDecodeError:
        return [text_of(line) for line in lines.split(b"\n")]


class BadLine(WrongUse):
    """A line that cannot be a message. Those that were read before it are."""

    def __init__(self, text: str, before: list[Keyed]) -> None:
        super().__init__(text)
        self.before = before


class LineReader:
    """Makes bodies, with their keys, of lines. Counts them, to name the bad one.

    `what` is the word for one: "line", or "TEXT" for arguments.
    """

    def __init__(
        self, *, as_json: bool = False, key: Key | None = None, key_field: str | None = None, what: str = "line"
    ) -> None:
        self._as_json = as_json
        self._key = key
        self._key_field = key_field
        self._what = what
        self._count = 0

    def read_run(self, lines: bytes) -> list[Keyed]:
        """Of lines with newlines between them. BadLine, with those before it, if one of them is bad."""
        return self.read_each(lines.split(b"\n")) if self._as_json else [(self._key, texts_of(lines))]

    def read_each(self, lines: Sequence[bytes]) -> list[Keyed]:
        """As `read_run`, of lines that are apart, and may have newlines in them."""
        if not self._as_json:
            return [(self._key, [text_of(line) for line in lines])]
        pairs: list[tuple[Key | None, Any]] = []
        try:
            for line in lines:
                pairs.append((self._key, self._object(line)) if self._key_field is None else self._with_key(line))
        except WrongUse as error:
            raise BadLine(str(error), _keyed(pairs)) from error
        return _keyed(pairs)

    def _object(self, line: bytes) -> Any:
        self._count += 1
        try:
            return _loads(line.decode())
        except json.JSONDecodeError as error:
            self._refuse(f"is not JSON: {error.msg} at column {error.colno}")
        except UnicodeDecodeError as error:
            self._refuse(f"is not JSON: it is not UTF-8 at byte {error.start + 1}")
        except (ValueError, RecursionError) as error:
            self._refuse(f"cannot be read as JSON: {error}")

    def _with_key(self, line: bytes) -> tuple[Key, Any]:
        body = self._object(line)
        name = self._key_field
        if not isinstance(body, dict) or name not in body:
            self._refuse(f"has no field {name!r}, which --key-field asks for")
        key = body[name]
        if isinstance(key, int) and not isinstance(key, bool):
            key = str(key)
        if not isinstance(key, str) or not key:
            self._refuse(
                f"has {json.dumps(key)} in its field {name!r}: a key is a text that is not empty, or an integer"
            )
        return key, body

    def _refuse(self, why: str) -> NoReturn:
        raise WrongUse(f"{self._what} {self._count} {why}") from None


def _keyed(pairs: list[tuple[Key | None, Any]]) -> list[Keyed]:
    return [(key, [body for _, body in run]) for key, run in groupby(pairs, key=itemgetter(0))]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not in JSON")


_loads: Callable[[str], Any] = json.JSONDecoder(parse_constant=_refuse_constant).decode


# --- to lines -------------------------------------------------------------------------------------------------------


def line_of(body: Any) -> bytes:
    """Text and bytes raw, everything else as compact JSON."""
    if isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else json_of(body)).encode(errors="backslashreplace")


def lines_of(batch: Sequence[Message]) -> bytes:
    """Each body on a line of its own. Hot: texts are joined in one go."""
    bodies = [message.body for message in batch]
    try:
        return ("\n".join(bodies) + "\n").encode()
    except (TypeError, UnicodeEncodeError):
        return b"".join([line_of(body) + b"\n" for body in bodies])


def meta_lines_of(batch: Sequence[Message]) -> bytes:
    """Each message as a line of JSON, with everything that is known of it."""
    return b"".join([json_of(meta_of(message)).encode(errors="backslashreplace") + b"\n" for message in batch])


def meta_of(message: Message) -> dict[str, Any]:
    """The sender is in hexadecimal, as in ids: many readers of JSON would round a number of 64 bits."""
    return {
        "id": message.id,
        "key": message.key,
        "headers": message.headers,
        "label": message.label,
        "group": message.group,
        "sender": f"{message.sender:016x}",
        "sequence": message.sequence,
        "sent_at": message.sent_at,
        "due_at": message.due_at,
        "ttl": message.ttl,
        "urgent": message.urgent,
        "attempt": message.attempt,
        "redelivered": message.redelivered,
        "receiver_index": message.receiver_index,
        "lane": message.lane,
        "shard": message.shard,
        "body": message.body,
    }


def json_of(value: Any) -> str:
    """Compact JSON. Bytes become base64 text; numbers that JSON has not (NaN) become null, as in JavaScript."""
    try:
        return _encode(value)
    except (TypeError, ValueError):
        return _encode(_plain(value))


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _plain(value: Any) -> Any:
    """The nearest thing that JSON has."""
    match value:
        case bytes() | bytearray():
            return b64encode(value).decode()
        case dict():
            return dict(_plain_items(value))
        case list() | tuple():
            return [_plain(item) for item in value]
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)


def _plain_items(value: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        plain = _plain(key)
        yield plain if isinstance(plain, str) else _encode(plain), _plain(item)
