"""What is left of a message that could not be handled. Owns the shape of dead letters: what they say, as a message."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import NoneType
from typing import Any

from rvq.errors import RvqError

SUFFIX = ".dead"
"""Dead letters of the label `work` go to `work.dead`."""

TRACE_CHARACTERS_MAX = 16_384
"""Of a traceback the end is kept: there the error is."""

ERROR_CHARACTERS_MAX = 4096
"""Of an error's words the beginning is kept."""


def sendable(text: str) -> str:
    """Names of files can have bytes in them that are no text: those are spelt out."""
    return text.encode(errors="backslashreplace").decode()


def live_label(label: str) -> str:
    """The label whose dead letters go to `label`; itself if it is none of the dead."""
    return label.removesuffix(SUFFIX)


def dead_label(label: str) -> str | None:
    """Where a label's dead letters go; None for those of dead letters, which end there."""
    return None if label.endswith(SUFFIX) else label + SUFFIX


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up, with why. Times are seconds since 1970."""

    id: str
    label: str
    group: str
    body: Any
    key: str | bytes | None
    headers: dict[str, Any] | None
    error: str
    traceback: str
    attempts: int
    sent_at: float
    died_at: float
    first_owner: str
    """The id of the receiver that tried it first."""
    last_owner: str
    """The id of the one that gave it up."""

    def as_body(self) -> dict[str, Any]:
        """As it is sent."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # asdict would copy the body

    def without_body(self, why: object) -> DeadLetter:
        """The same where the letter would be larger or deeper than a message may be: its size, or what is wrong."""
        return replace(self, body=None, headers=None, error=f"{self.error}{_TOO_LARGE}{why})")

    @property
    def lacks_body(self) -> bool:
        """Was its body too large to be kept?"""
        return self.body is None and _TOO_LARGE in self.error

    @classmethod
    def from_body(cls, body: object) -> DeadLetter:
        """From a message to a `….dead` label. RvqError if it is not a dead letter."""
        names = {field.name for field in fields(cls)}
        if not isinstance(body, dict) or not names <= body.keys() or not all(map(_fits, names, map(body.get, names))):
            raise RvqError("this message is not a dead letter: somebody sent it to a label of dead letters by hand")
        return cls(**{name: body[name] for name in names})


_TOO_LARGE = " (its body was too large: "

_KINDS: dict[str, tuple[type, ...]] = {
    "body": (object,),
    "key": (str, bytes, NoneType),
    "headers": (dict, NoneType),
    "attempts": (int,),
    "sent_at": (float, int),
    "died_at": (float, int),
}
"""What is in the fields that are not texts."""


def _fits(name: str, value: object) -> bool:
    return isinstance(value, _KINDS.get(name, (str,))) and not (name != "body" and isinstance(value, bool))
