"""One finding of the doctor: how bad it is, what it is about, and what to change. Owns how it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Verdict(Enum):
    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """A line of the report. change: what to do, where there is something. facts: the figures, for scripts."""

    verdict: Verdict
    subject: str
    text: str
    change: str = ""
    peer: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        who = f"{self.peer}: " if self.peer else ""
        change = f": {self.change}" if self.change else ""
        return f"{self.verdict.value:<5} {self.subject:<15} {who}{self.text}{change}"

    @property
    def is_broken(self) -> bool:
        return self.verdict is Verdict.FAIL

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict.value.lower(),
            "subject": self.subject,
            "peer": self.peer or None,
            "text": self.text,
            "change": self.change or None,
            "facts": dict(self.facts),
        }


def ok(subject: str, text: str, **facts: Any) -> Finding:
    return Finding(Verdict.OK, subject, text, facts=facts)


def warn(subject: str, text: str, change: str, **facts: Any) -> Finding:
    return Finding(Verdict.WARN, subject, text, change, facts=facts)


def fail(subject: str, text: str, change: str = "", **facts: Any) -> Finding:
    return Finding(Verdict.FAIL, subject, text, change, facts=facts)
