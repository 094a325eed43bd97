"""The report of a soak: a page that stands for itself, and the same as JSON. Owns how it looks; counts nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from bench.figures import number
from bench.soak.chaos import Span
from bench.soak.judge import Account, words
from bench.soak.measure import Measured, summary
from bench.soak.schedule import EVERYWHERE, HOSTS, Kind
from bench.soak.story import Story
from rvq.spark import svg

ROW, TOP, BOTTOM = 20, 8, 26
COLOURS = {
    Kind.KILL: "#c2395e",
    Kind.LEAVE: "#6b6b6b",
    Kind.STOP: "#d1622b",
    Kind.PULL: "#2563a8",
    Kind.DEAF: "#4b8f9e",
    Kind.MUTE: "#8a4fa3",
    Kind.LOSS: "#b9cbe4",
    Kind.SPLIT: "#123a63",
    Kind.STEP: "#2e8b57",
    Kind.SLOW: "#b8860b",
    Kind.REKEY: "#94b447",
}
STYLE = """
body{font:14px/1.5 sans-serif;max-width:940px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:.6em 0}td,th{padding:2px 14px 2px 0;text-align:left;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}figure{margin:.4em 0}svg{max-width:100%;height:auto}
figcaption span{margin-right:1em;white-space:nowrap;font-size:12px}figcaption i{display:inline-block;width:10px;
height:10px;margin-right:4px}
.good{color:#1a7f37}.bad{color:#c2395e}code{background:#f3f3f3;padding:1px 4px}h2{margin-top:1.6em}
"""


@dataclass(frozen=True)
class Report:
    """What there is to tell."""

    command: str
    began: str
    began_at: float
    seconds: float
    machine: dict[str, Any]
    story: Story
    account: Account
    measured: Measured


def keep(report: Report, folder: Path) -> Path:
    """report.html and report.json in this folder."""
    folder.mkdir(parents=True)
    (folder / "report.html").write_text(page(report))
    (folder / "report.json").write_text(json.dumps(as_dict(report), indent=1) + "\n")
    return folder


def as_dict(report: Report) -> dict[str, Any]:
    measured, began = report.measured, report.began_at
    return {
        "command": report.command,
        "began": report.began,
        "seconds": report.seconds,
        "ok": report.account.ok,
        "machine": report.machine,
        "counts": dict(report.account.counts),
        "takeovers": {kind: summary(values) for kind, values in measured.takeovers.items()},
        "memory_mb_max": {host: round(max(mb for _, mb in points), 1) for host, points in measured.memory.items()},
        "violations": list(words(report.account.violations, began, most=1000)),
        "faults": [_fault(span, began) for span in report.story.spans],
        "memory_mb": measured.memory,
        "waits_s": measured.waits,
        "rates": measured.rates,
    }


def _fault(span: Span, began_at: float) -> dict[str, Any]:
    since, to = (round(at - began_at, 3) if at < float("inf") else None for at in (span.since, span.to))
    where = {"host": span.host, "process": span.process}
    return {"kind": span.kind.value, **where, "since": since, "to": to, "amount": span.amount}


def in_words(report: Report) -> Iterator[str]:
    """For a terminal."""
    counts = report.account.counts
    width = max((len(what) for what in counts), default=0)
    yield from (f"{what:<{width}}  {number(count):>9}" for what, count in counts.items())
    for kind, values in report.measured.takeovers.items():
        facts = summary(values)
        times = f"median {facts['median_s']} s, most {facts['most_s']} s ({facts['times']} times)"
        yield f"taken over after {kind}: {times}"
    most = {host: max(mb for _, mb in points) for host, points in report.measured.memory.items()}
    if most:
        host = max(most, key=lambda host: most[host])
        yield f"most memory of a process: {most[host]:.0f} MB ({host})"


# --- the page -----------------------------------------------------------------------------------------------------


def page(report: Report) -> str:
    """Everything in one file: no scripts, nothing from elsewhere."""
    account, measured = report.account, report.measured
    good = "every message is accounted for" if account.ok else f"{len(account.violations)} broken promises"
    machine = f"{report.machine.get('processor', '')}, {report.machine.get('cores', '?')} cores"
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>rvq soak: {escape(good)}</title>",
        f"<style>{STYLE}</style><h1>rvq soak</h1>",
        f'<p class="{"good" if account.ok else "bad"}"><b>{escape(good)}</b></p>',
        f"<p>{report.seconds / 60:g} minutes from {escape(report.began)} on {escape(machine)}. "
        f"The same schedule again: <code>{escape(report.command)}</code></p>",
        *_violations(report),
        "<h2>Faults</h2>",
        timeline(report.story.spans, report.began_at, _end(report)),
        "<h2>Counts</h2>",
        _table(["", ""], [[what, number(count)] for what, count in account.counts.items()]),
        "<h2>Taken over</h2><p>From the fault until another receiver started the first message that it inherited.</p>",
        _table(["after", "times", "least", "median", "most"], [_takeover(k, v) for k, v in measured.takeovers.items()]),
        "<h2>Longest wait</h2><p>From sending to the first start, of what was sent in each second; without what was "
        "sent for later.</p>",
        svg.lines(measured.waits, "s"),
        "<h2>Handled per second</h2>",
        svg.lines(measured.rates, "messages/s"),
        "<h2>Memory</h2><p>Resident, by host. A process that is started again begins anew.</p>",
        svg.lines(measured.memory, "MB"),
        "</html>",
    ]
    return "\n".join(parts)


def _end(report: Report) -> float:
    return max((points[-1][0] for points in report.measured.memory.values() if points), default=report.seconds)


def _violations(report: Report) -> Iterator[str]:
    if not report.account.ok:
        yield "<ul>"
        yield from (f"<li>{escape(line)}</li>" for line in words(report.account.violations, report.began_at, 100))
        yield "</ul>"


def _takeover(kind: str, values: list[float]) -> list[str]:
    facts = summary(values)
    return [kind, number(facts["times"]), *(f"{facts[name]:.2f} s" for name in ("least_s", "median_s", "most_s"))]


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [f"<tr>{''.join(f'<th>{escape(word)}</th>' for word in head)}</tr>"] if any(head) else []
    for what, *rest in rows:
        cells = "".join(f'<td class="n">{escape(word)}</td>' for word in rest)
        lines.append(f"<tr><td>{escape(what)}</td>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def timeline(spans: list[Span], began_at: float, end: float) -> str:
    """A row for each host, and one for what befalls all; a bar for each fault."""
    rows = [*HOSTS, EVERYWHERE]
    height = TOP + ROW * len(rows) + BOTTOM
    parts = [
        f'<svg viewBox="0 0 {svg.WIDTH} {height}" width="{svg.WIDTH}" height="{height}" '
        'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="11">'
    ]

    def x(at: float) -> float:
        part = min(max(at / end, 0.0), 1.0) if end else 0.0
        return round(svg.LEFT + part * (svg.WIDTH - svg.LEFT - svg.RIGHT), 1)

    for place, host in enumerate(rows):
        y = TOP + ROW * place
        parts.append(f'<text x="{svg.LEFT - 6}" y="{y + 14}" text-anchor="end" fill="#555">{host}</text>')
        parts.append(
            f'<line x1="{svg.LEFT}" x2="{svg.WIDTH - svg.RIGHT}" y1="{y + ROW}" y2="{y + ROW}" stroke="#eee"/>'
        )
    for span in sorted(spans, key=lambda span: span.kind is not Kind.LOSS):  # the long and pale ones below
        since, to = span.since - began_at, min(span.to - began_at, end)
        y = TOP + ROW * rows.index(span.host) + 3
        wide = max(3.0, x(to) - x(since))
        title = f"{span.process or span.host}: {span.kind.value} {span.amount:g}, {since:.1f} to {to:.1f} s"
        parts.append(
            f'<rect x="{x(since)}" y="{y}" width="{wide:.1f}" height="{ROW - 6}" rx="2" fill="{COLOURS[span.kind]}">'
            f"<title>{escape(title)}</title></rect>"
        )
    for n in range(6):
        at = end * n / 5
        parts.append(f'<text x="{x(at)}" y="{height - 8}" text-anchor="middle" fill="#555">{_clock(at)}</text>')
    keys = "".join(f'<span><i style="background:{COLOURS[kind]}"></i>{kind.value}</span>' for kind in Kind)
    return f"<figure>{''.join(parts)}</svg><figcaption>{keys}</figcaption></figure>"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
