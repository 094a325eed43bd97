"""What the values of options may be. Owns the limits and the words of refusal."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from datetime import datetime
from typing import Final, Literal

from rvq.limits import WEIGHT_MAX

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def count(text: str) -> int:
    """A whole number from 1."""
    return _whole(text, "give a whole number from 1")


def weight(text: str) -> int:
    """Slots of a receiver."""
    advice = f"give a whole number from 1 to {WEIGHT_MAX}"
    value = _whole(text, advice)
    if value > WEIGHT_MAX:
        raise ArgumentTypeError(f"{text!r} is too much: {advice}")
    return value


def seconds(text: str) -> float:
    """A duration; 0 is one."""
    value = _number(text, "give seconds, from 0")
    if value < 0:
        raise ArgumentTypeError(f"{text!r} is less than nothing: give seconds, from 0")
    return value


def seconds_above_0(text: str) -> float:
    """A duration in which something can happen."""
    return _above_0(text, "give seconds above 0")


def moment(text: str) -> datetime:
    """A time of which everybody knows when it is."""
    advice = "give a day and time with its zone, such as 2030-01-31T18:00:00+01:00 or 2030-01-31T17:00:00Z"
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a time in ISO 8601: {advice}") from None
    if value.tzinfo is None:
        raise ArgumentTypeError(f"{text!r} has no time zone, so nobody knows when that is: {advice}")
    return value


def span(text: str) -> float:
    """A duration with its unit, in seconds: 500ms, 90s, 15m, 12h, 7d."""
    advice = "give a number and a unit: 500ms, 90s, 15m, 12h, 7d"
    unit = text.lstrip("0123456789.")
    if unit not in _UNITS:
        raise ArgumentTypeError(f"{text!r} is not a duration: {advice}")
    return _UNITS[unit] * _above_0(text[: len(text) - len(unit)], advice)


def sync(text: str) -> Literal["batch", "never"] | float:
    """When a journal is synced."""
    if text == "batch":
        return "batch"
    if text == "never":
        return "never"
    try:
        return span(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{error}; or batch, or never") from None


def rate(text: str) -> float:
    """Messages per second."""
    return _above_0(text, "give messages per second, above 0")


def factor(text: str) -> float:
    """Times as fast."""
    return _above_0(text, "give a number above 0, such as 1 or 2.5")


def identity(text: str) -> int:
    """A sender's id, as it stands before the dash in the id of a message."""
    try:
        value = int(text, 16)
    except ValueError:
        value = -1
    if not 0 < value < 2**64:
        raise ArgumentTypeError(f"{text!r} is not an id: give up to 16 hex digits, such as 3f2a1b0c9d8e7f60")
    return value


def run(text: str) -> tuple[int, int]:
    """Sequences: one, or from one to another."""
    advice = "give a sequence or two, such as 7 or 100-200"
    first, dash, last = text.partition("-")
    begin = _whole(first, advice)
    end = _whole(last, advice) if dash else begin
    if end < begin:
        raise ArgumentTypeError(f"{text!r} ends before it begins: {advice}")
    return begin, end


def filled(text: str) -> str:
    """A text that is not empty."""
    if not text:
        raise ArgumentTypeError("is empty: leave the option out, or give a text")
    return text


def _above_0(text: str, advice: str) -> float:
    value = _number(text, advice)
    if value <= 0:
        raise ArgumentTypeError(f"{text!r} is not above 0: {advice}")
    return value


def _whole(text: str, advice: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a whole number: {advice}") from None
    if value < 1:
        raise ArgumentTypeError(f"{text!r} is less than 1: {advice}")
    return value


def _number(text: str, advice: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentTypeError(f"{text!r} is not a number: {advice}")
    return value
