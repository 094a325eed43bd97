"""Bodies, keys and headers as bytes that any tool reads. Owns the rule: bytes as sent, text as UTF-8, the rest as JSON.

The JSON is that of `rvq-listen`: compact; bytes inside become base64 text, and numbers that JSON has not become null.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final

BYTES: Final = "bytes"
TEXT: Final = "text"
JSON: Final = "json"

_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def as_bytes(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    return (value if isinstance(value, str) else as_json(value)).encode(errors="backslashreplace")


def type_of(value: Any) -> str:
    """What it was before it became bytes."""
    return BYTES if isinstance(value, bytes) else TEXT if isinstance(value, str) else JSON


def as_json(value: Any) -> str:
    try:
        return _encode(value)
    except (TypeError, ValueError):
        return _encode(_plain(value))


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
