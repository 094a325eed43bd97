"""A picture of a bus as lines for people. Owns what is in which column and how numbers look; knows no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rvq.cli.columns import Cell, Column, Line, cut, fit

Row = dict[str, Any]

STATE_STYLES = {
    "silent": "bold red",
    "draining": "yellow",
    "joining": "yellow",
    "paused": "magenta",
    "waiting": "yellow",
    "idle": "dim",
}
EVENT_STYLES = {
    "silent": "red",
    "expelled": "red",
    "sender died": "red",
    "lost": "bold red",
    "loss": "yellow",
    "joined": "green",
    "back": "green",
}
LAG_S_HIGH = 1.0
"""A lag that is worth a colour: as long as a lease."""

SORTS: dict[str, Callable[[Row], Any]] = {
    "id": lambda row: row["id"],
    "rate": lambda row: -row["rate"],
    "lag": lambda row: -(row["lag"] or 0.0),
    "backlog": lambda row: -row["backlog"],
    "repaired": lambda row: -row["repaired"],
    "host": lambda row: (row["host"] or "", row["pid"] or 0),
}
"""The orders in which receivers can be shown, by name."""


class View(NamedTuple):
    """How a picture is looked at. label: this one only."""

    sort: str = "id"
    label: str | None = None


PLAIN = View()


# --- how values look --------------------------------------------------------------------------------------------------


def count(number: float) -> str:
    """With commas, or in thousands of thousands where that is too long."""
    for size, unit in ((1e12, "T"), (1e9, "G")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:,.0f}" if number < 1e7 else f"{number / 1e6:.1f}M"


def rate(number: float) -> str:
    return f"{number:.1f}" if 0 < number < 10 else count(number)


def seconds(value: float | None) -> str:
    """As short as may be."""
    if value is None:
        return "-"
    if value < 0.0995:
        return f"{value * 1000:.0f}ms"
    if value < 99.5:
        return f"{value:.1f}s" if value < 9.95 else f"{value:.0f}s"
    return f"{value / 60:.0f}m" if value < 5970 else f"{value / 3600:.0f}h"


def short(id: str) -> str:
    return f"{id[:4]}…"


def slots(index: Sequence[int]) -> str:
    """0-2,5: runs of slots."""
    runs: list[list[int]] = []
    for slot in index:
        if runs and slot == runs[-1][1] + 1:
            runs[-1][1] = slot
        else:
            runs.append([slot, slot])
    return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in runs) or "-"


def clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _home(row: Row) -> str:
    return "?" if row["host"] is None else f"{row['host']}:{row['pid']}"


def _state(row: Row) -> Cell:
    return Cell(row["state"], STATE_STYLES.get(row["state"], ""))


# --- receivers and senders --------------------------------------------------------------------------------------------

_RECEIVER: list[tuple[Column, Callable[[Row], Cell]]] = [
    (Column("RECEIVER"), lambda r: Cell(short(r["id"]))),
    (Column("HOST:PID", 5), lambda r: Cell(_home(r))),
    (Column("STATE"), _state),
    (Column("SLOTS", 4), lambda r: Cell(slots(r["index"]))),
    (Column("W", 9, True), lambda r: Cell(str(r["weight"]))),
    (Column("SHARE", 0, True), lambda r: Cell(f"{100 * r['share']:.0f}%")),
    (Column("MSG/S", 0, True), lambda r: Cell(rate(r["rate"]))),
    (Column("LAG", 1, True), lambda r: Cell(seconds(r["lag"]), "yellow" if (r["lag"] or 0) >= LAG_S_HIGH else "")),
    (Column("BACKLOG", 2, True), lambda r: Cell(count(r["backlog"]))),
    (Column("LEASE", 7, True), lambda r: Cell(seconds(r["lease_age"]))),
    (Column("HEARD", 6, True), lambda r: Cell(seconds(r["heard_age"]))),
    (Column("ACKED", 10, True), lambda r: Cell(count(r["acked"]))),
    (Column("RETRIED", 13, True), lambda r: Cell(count(r["retried"]))),
    (Column("DEAD", 12, True), lambda r: Cell(count(r["dead"]), "yellow" if r["dead"] else "")),
    (Column("EXPIRED", 15, True), lambda r: Cell(count(r["expired"]))),
    (Column("LOST", 11, True), lambda r: Cell(count(r["lost"]), "bold red" if r["lost"] else "")),
    (Column("REPAIRED", 8, True), lambda r: Cell(count(r["repaired"]), "yellow" if r["repaired"] else "")),
    (Column("ADDRESS", 14), lambda r: Cell(r["address"] or "?")),
]

_SENDER: list[tuple[Column, Callable[[Row], Cell]]] = [
    (Column("SENDER"), lambda s: Cell(short(s["id"]))),
    (Column("HOST:PID", 3), lambda s: Cell(_home(s))),
    (Column("STATE"), _state),
    (Column("MSG/S", 0, True), lambda s: Cell(rate(s["rate"]))),
    (Column("UNDONE", 0, True), lambda s: Cell(count(s["undone"]))),
    (Column("WINDOW", 1, True), lambda s: Cell(_window(s))),
    (Column("REPAIRED", 4, True), lambda s: Cell(count(s["repaired"]), "yellow" if s["repaired"] else "")),
    (Column("STAMP", 5, True), lambda s: Cell(_stamp(s))),
    (Column("HEARD", 6, True), lambda s: Cell(seconds(s["heard_age"]))),
    (Column("SENT", 7, True), lambda s: Cell(count(s["sent"]))),
    (Column("ACKED", 8, True), lambda s: Cell(count(s["acked"]))),
    (Column("LOST", 9, True), lambda s: Cell(count(s["lost"]), "bold red" if s["lost"] else "")),
    (Column("ADDRESS", 10), lambda s: Cell(s["address"] or "?")),
]


def _window(sender: Row) -> str:
    return f"{100 * sender['window_used'] / sender['window']:.0f}%" if sender["window"] else "-"


def _stamp(sender: Row) -> str:
    return f"{sender['stamp']} at {count(sender['stamp_at'])}" if sender["stamp_at"] else str(sender["stamp"])


def _table(shape: list[tuple[Column, Callable[[Row], Cell]]], rows: list[Row], width: int | None) -> list[Line]:
    cells = [[show(row) for _, show in shape] for row in rows]
    return fit([column for column, _ in shape], cells, width, "  ")


# --- the whole picture ------------------------------------------------------------------------------------------------


def head(picture: Row, width: int | None, note: str = "") -> list[Line]:
    """Which bus, and how much is on it."""
    bus, totals = picture["bus"], picture["totals"]
    sealed = ", sealed" if bus.get("sealed") else ""
    how = "peers" if "peers" in bus else bus.get("address")
    where = f"{bus['interface']} {how} port {bus['port']}{sealed}" if bus else "a bus"
    ends = ", ".join(
        f"{totals[name]} {name[: -1 if totals[name] == 1 else None]}"
        for name in ("labels", "groups", "receivers", "senders")
    )
    first = (
        Cell("rvq top", "bold"),
        Cell(f"  {where}  {clock(picture['at'])}"),
        Cell(f"  {note}" if note else "", "bold"),
    )
    rates = f"  in {rate(totals['rate_in'])}/s, out {rate(totals['rate_out'])}/s, {count(totals['undone'])} undone"
    bad = [f"{count(totals[name])} {name}" for name in ("dead", "lost") if totals[name]]
    second = (Cell(ends), Cell(rates), Cell("".join(f", {what}" for what in bad), "bold red"))
    return [cut(first, width), cut(second, width)]


def body(picture: Row, width: int | None, view: View = PLAIN) -> list[Line]:
    """Labels, and in each its groups with their receivers, and its senders."""
    lines: list[Line] = []
    for label in picture["labels"]:
        if view.label in (None, label["label"]):
            lines += _label(label, width, view)
    return lines


def _label(label: Row, width: int | None, view: View) -> list[Line]:
    lines: list[Line] = [(Cell(label["label"], "bold cyan"),)]
    for group in label["groups"]:
        counter, keeper = group["version"]
        several = "s" * (group["slots"] != 1)
        table = f"table {counter} by {short(keeper)}, {group['slots']} slot{several}" if counter else "no table yet"
        paused = Cell(" PAUSED", "magenta") if group["paused"] else Cell("")
        lines.append(cut((Cell(f" {group['group']}", "bold"), Cell(f"  {table}"), paused), width))
        rows = sorted(group["receivers"], key=lambda row: (SORTS[view.sort](row), row["id"]))
        if rows:
            lines += _table(_RECEIVER, rows, width)
    if label["senders"]:
        lines += _table(_SENDER, label["senders"], width)
    elif not label["groups"]:
        lines.append((Cell("  nobody is heard", "dim"),))
    return lines


def events(picture: Row, width: int | None, most: int, view: View = PLAIN) -> list[Line]:
    """The last of them, the newest at the end."""
    shown = [event for event in picture["events"] if view.label in (None, event["label"])]
    several = len({event["label"] for event in shown}) > 1
    lines = []
    for event in shown[len(shown) - most if len(shown) > most else 0 :]:
        where = f"{event['label']}: " if several else ""
        text = Cell(f"{where}{event['text']}", EVENT_STYLES.get(event["kind"], ""))
        lines.append(cut((Cell(f"  {clock(event['at'])}  ", "dim"), text), width))
    return lines


def everything(picture: Row, width: int | None = None, events_most: int = 20) -> list[Line]:
    """One picture from top to bottom, for `--once`."""
    lines = [*head(picture, width), *body(picture, width)]
    happened = events(picture, width, events_most)
    return [*lines, (Cell("events", "bold"),), *happened] if happened else lines
