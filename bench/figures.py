"""What a bench has measured. Owns figures, their bounds, and how they are printed and kept."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Figure:
    """One number. `most` or `least` is what it must reach, if anything."""

    what: str
    value: float
    unit: str = ""
    most: float | None = None
    least: float | None = None

    @property
    def good(self) -> bool | None:
        """None if nothing was asked of it."""
        if self.most is None and self.least is None:
            return None
        return (self.most is None or self.value <= self.most) and (self.least is None or self.value >= self.least)

    @property
    def must(self) -> str:
        if self.most is not None:
            return f"<= {number(self.most)} {self.unit}".rstrip()
        return f">= {number(self.least)} {self.unit}".rstrip() if self.least is not None else ""


@dataclass(frozen=True)
class Bench:
    """Something to measure. `run` is told whether to be quick."""

    name: str
    what: str
    run: Callable[[bool], Iterable[Figure]]


@dataclass
class Outcome:
    """A bench that was run. `skipped` says why it was not."""

    name: str
    what: str
    seconds: float = 0.0
    figures: list[Figure] = field(default_factory=list)
    skipped: str = ""
    failed: str = ""

    @property
    def good(self) -> bool:
        return not self.failed and all(figure.good is not False for figure in self.figures)


class Skipped(Exception):
    """This machine cannot run a bench; says why."""


def number(value: float) -> str:
    """As a reader wants it: no more than four digits that mean something."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def machine() -> dict[str, Any]:
    """Where this was measured."""
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "processor": _processor(),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "rmem_max": _read("/proc/sys/net/core/rmem_max"),
    }


def _processor() -> str:
    lines = _read("/proc/cpuinfo").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def table(outcome: Outcome) -> str:
    """One bench as lines."""
    head = f"{outcome.name}: {outcome.what}"
    if outcome.skipped:
        return f"{head}\n  skipped: {outcome.skipped}"
    marks = {None: " ", True: "ok", False: "MISSED"}
    rows = [(f.what, number(f.value), f.unit, f.must, marks[f.good]) for f in outcome.figures]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    lines = [
        f"  {what:<{widths[0]}}  {value:>{widths[1]}} {unit:<{widths[2]}}  {must:<{widths[3]}}  {mark}".rstrip()
        for what, value, unit, must, mark in rows
    ]
    if outcome.failed:
        lines.append(f"  FAILED: {outcome.failed}")
    return "\n".join([f"{head} ({outcome.seconds:.1f} s)", *lines])


def keep(outcomes: Iterable[Outcome], facts: dict[str, Any]) -> Path:
    """All of them as JSON, in a file of this run; `facts` are the machine's before it: its load is then not ours."""
    return keep_json("", {"machine": facts, "benches": [_as_dict(outcome) for outcome in outcomes]})


def _as_dict(outcome: Outcome) -> dict[str, Any]:
    figures = [asdict(figure) | {"good": figure.good} for figure in outcome.figures]
    return asdict(outcome) | {"figures": figures, "good": outcome.good}


def keep_json(name: str, content: dict[str, Any]) -> Path:
    """In the folder of results, by the time of day."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}{name}.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path
