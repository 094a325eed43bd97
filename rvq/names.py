"""What may be a label or a group name. Owns the rules and the words of refusal; knows nothing of who uses the names."""

from __future__ import annotations

import unicodedata

from rvq.errors import BadLabel
from rvq.limits import LABEL_BYTES_MAX

_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories that would break a log line or cannot be encoded: controls, lone surrogates, line separators."""


def check_label(label: object) -> str:
    """`label` itself if it can be sent to and listened for; BadLabel otherwise."""
    return _check(label, "label")


def check_group(name: object) -> str:
    """`name` itself if receivers can share work under it; BadLabel otherwise."""
    return _check(name, "group")


def _check(name: object, what: str) -> str:
    if not isinstance(name, str):
        raise BadLabel(f"{what} {name!r} is {type(name).__name__}, not str: give a text such as 'work'")
    if not name:
        raise BadLabel(f"{what} is empty: give a text such as 'work'")
    for place, character in enumerate(name):
        if unicodedata.category(character) in _UNPRINTABLE:
            raise BadLabel(f"{what} {_shown(name)} has the character {character!r} at {place}: take it out")
    size = len(name.encode())
    if size > LABEL_BYTES_MAX:
        raise BadLabel(f"{what} {_shown(name)} is {size} bytes long in UTF-8: use at most {LABEL_BYTES_MAX}")
    return name


def _shown(name: str) -> str:
    return repr(name if len(name) <= 40 else f"{name[:40]}…")
