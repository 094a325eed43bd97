"""The report as a page: one HTML file with its plots in it and nothing from outside. Owns what is shown, and how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from rvq.spark.audit import Audit
from rvq.spark.svg import Marks, lines, shares

RECEIVERS_MAX: Final = 8
"""Shown by themselves; the others are one."""
FINDINGS_MAX: Final = 200

_STYLE: Final = """
body { font: 15px/1.45 sans-serif; margin: 2em auto; max-width: 940px; color: #222; padding: 0 1em }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em } p.note { color: #555 }
table { border-collapse: collapse; margin: .8em 0 }
th, td { padding: .2em .8em; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left } .good { color: #2e8b57 } .bad { color: #c2395e }
figure { margin: .6em 0 } svg { max-width: 100%; height: auto }
figcaption span { margin-right: 1.2em; font-size: .85em }
figcaption i { display: inline-block; width: .9em; height: .9em; margin-right: .35em; vertical-align: -.1em }
"""

Rows = Sequence[Mapping[str, Any]]
"""Of `stats`, by label, group and receiver."""


def audit_page(path: str, audit: Audit, rows: Rows = (), marks: Marks = (), window_s: float = 1.0) -> str:
    """The audit's verdict, and the plots if there are stats."""
    words = ("good", "nothing lost, nothing done twice") if audit.good else ("bad", "not everything was done once")
    parts = [
        f'<p class="{words[0]}"><b>{words[1]}</b></p>',
        _table(("messages", "count"), sorted(audit.counts.items(), key=lambda item: -item[1])),
    ]
    if audit.gaps:
        gaps = ", ".join(f"{id:016x} ({missing})" for id, missing in sorted(audit.gaps.items()))
        parts.append(f"<p>Words of receivers that are not in the journal: {gaps}. What nobody told of is unknown.</p>")
    if audit.findings:
        parts.append("<h2>Findings</h2>")
        columns = ("verdict", "label", "group", "sender", "first", "last", "messages", "by")
        found = [
            (f.verdict, f.label, f.group, f"{f.sender:016x}", f.first, f.last, f.count, _ids(f.receivers))
            for f in audit.findings[:FINDINGS_MAX]
        ]
        parts.append(_table(columns, found))
        if len(audit.findings) > FINDINGS_MAX:
            parts.append(f"<p>… and {len(audit.findings) - FINDINGS_MAX:,} more.</p>")
    return _page(f"Audit of {path}", parts + _plots(rows, marks, window_s))


def stats_page(path: str, rows: Rows, marks: Marks = (), window_s: float = 1.0) -> str:
    """Rates, shares, latency and lag over time."""
    return _page(f"Stats of {path}", _plots(rows, marks, window_s))


def _plots(rows: Rows, marks: Marks, window_s: float = 1.0) -> list[str]:
    if not rows:
        return []
    parts = []
    names = ("inserted", "routed", "emitted", "acked", "retried", "dead")
    counted = {name: _sums(rows, name, 1 / window_s) for name in names}
    always = ("inserted", "acked")
    rates = {name: at for name, at in counted.items() if name in always or any(value for _, value in at)}
    parts += ["<h2>Rates</h2>", lines(rates, "messages per second", marks)]
    for label, group in sorted({(row["label"], row["group"]) for row in rows if row["group"] is not None}):
        own = [row for row in rows if (row["label"], row["group"]) == (label, group)]
        by_receiver = {name: _sums(found, "acked") for name, found in _by_receiver(own)}
        parts.append(f"<h2>{escape(str(label))}, group {escape(str(group))}</h2>")
        parts.append("<p class=note>Who acknowledged what part; dashed lines are switches to another table.</p>")
        parts.append(shares(by_receiver, marks))
        latency = {
            words: [(_time(row), row[name]) for row in _worst(own, name)]
            for words, name in (("p50", "p50_ms"), ("p99 (of the slowest receiver)", "p99_ms"))
        }
        parts += ["<h2>Latency</h2>", lines(latency, "ms from sent to acknowledged", marks)]
    return parts


def _sums(rows: Rows, name: str, factor: float = 1.0) -> list[tuple[float, float]]:
    found: dict[float, float] = {_time(row): 0.0 for row in rows}
    for row in rows:
        found[_time(row)] += (row[name] or 0) * factor
    return sorted(found.items())


def _worst(rows: Rows, name: str) -> list[Mapping[str, Any]]:
    """Of each window the row with the highest value."""
    found: dict[float, Mapping[str, Any]] = {}
    for row in rows:
        if row[name] is not None and (_time(row) not in found or row[name] > found[_time(row)][name]):
            found[_time(row)] = row
    return [found[time] for time in sorted(found)]


def _by_receiver(rows: Rows) -> list[tuple[str, Rows]]:
    total: dict[int, int] = {}
    for row in rows:
        if row["receiver"] is not None:
            total[row["receiver"]] = total.get(row["receiver"], 0) + row["acked"]
    shown = sorted(total, key=lambda id: -total[id])[:RECEIVERS_MAX]
    found: list[tuple[str, Rows]] = [(f"{id:016x}", [row for row in rows if row["receiver"] == id]) for id in shown]
    others = [row for row in rows if row["receiver"] not in shown and row["receiver"] is not None]
    return [*found, (f"{len(total) - len(shown)} others", others)] if others else found


def _time(row: Mapping[str, Any]) -> float:
    at: float = row["window"].timestamp()
    return at


def _ids(ids: Iterable[int]) -> str:
    return " ".join(f"{id:016x}" for id in ids)


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def _page(title: str, parts: Sequence[str]) -> str:
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1><p class=note>Made {made}. Times are UTC.</p>"
        f"{''.join(parts)}</body></html>\n"
    )
