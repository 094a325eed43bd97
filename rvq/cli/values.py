"""What the values of options may be. Owns the limits and the words of refusal."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from datetime import datetime

from rvq.limits import WEIGHT_MAX


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


def rate(text: str) -> float:
    """Messages per second."""
    return _above_0(text, "give messages per second, above 0")


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
