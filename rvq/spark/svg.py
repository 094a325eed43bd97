"""Plots as SVG, by hand: lines over time, and stacked shares, with marks. Owns the drawing; knows no messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from math import floor, log10
from typing import Final

WIDTH, HEIGHT = 900, 260
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 14, 34
COLORS: Final = ("#2563a8", "#d1622b", "#2e8b57", "#8a4fa3", "#b8860b", "#c2395e", "#4b8f9e", "#6b6b6b")
TICKS: Final = 5
DOTS_MAX: Final = 200
"""A longer line has none: they would only make it thick."""

Series = Mapping[str, Sequence[tuple[float, float]]]
"""By name: (time in seconds since 1970, value)."""
Marks = Sequence[tuple[float, str]]
"""(time, what happened then)."""


class _Frame:
    """From values to places."""

    def __init__(self, times: Sequence[float], top: float) -> None:
        self.low, self.high = min(times, default=0.0), max(times, default=1.0)
        self.top = nice(top)

    def x(self, time: float) -> float:
        span = self.high - self.low
        part = (time - self.low) / span if span else 0.5
        return round(LEFT + part * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - value / self.top * (HEIGHT - TOP - BOTTOM), 1)


def nice(value: float) -> float:
    """A round number that is not below it."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(value))
    return next(step * unit for step in (1, 2, 2.5, 5, 10) if step * unit >= value * (1 - 1e-9))


def lines(series: Series, unit: str, marks: Marks = ()) -> str:
    """One line for each name."""
    times = [time for points in series.values() for time, _ in points]
    frame = _Frame(times, max((value for points in series.values() for _, value in points), default=0.0))
    drawn = []
    for color, (name, points) in zip(_colors(len(series)), series.items(), strict=True):
        places = " ".join(f"{frame.x(time)},{frame.y(value)}" for time, value in points)
        shown = points if len(points) <= DOTS_MAX else ()
        dots = "".join(f'<circle cx="{frame.x(t)}" cy="{frame.y(v)}" r="2" fill="{color}"/>' for t, v in shown)
        drawn.append(f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="1.6"/>{dots}')
        drawn[-1] = f"<g><title>{escape(name)}</title>{drawn[-1]}</g>"
    return _page(frame, drawn, list(series), unit, marks)


def shares(series: Series, marks: Marks = ()) -> str:
    """The part that each name has of all, in bars above each other."""
    times = sorted({time for points in series.values() for time, _ in points})
    frame = _Frame(times, 100.0)
    sums = dict.fromkeys(times, 0.0)
    for points in series.values():
        for time, value in points:
            sums[time] += value
    width = round(max(2.0, (WIDTH - LEFT - RIGHT) / max(len(times), 1) - 1), 1)
    below = dict.fromkeys(times, 0.0)
    drawn = []
    for color, (name, points) in zip(_colors(len(series)), series.items(), strict=True):
        for time, value in points:
            part = 100 * value / sums[time] if sums[time] else 0.0
            high = frame.y(below[time] + part)
            tall = round(frame.y(below[time]) - high, 1)
            left = min(max(frame.x(time) - width / 2, LEFT), WIDTH - RIGHT - width)
            drawn.append(
                f'<rect x="{left:.1f}" y="{high}" width="{width}" height="{tall}" fill="{color}">'
                f"<title>{escape(name)}: {part:.1f} %</title></rect>"
            )
            below[time] += part
    return _page(frame, drawn, list(series), "%", marks)


def _colors(count: int) -> list[str]:
    return [COLORS[n % len(COLORS)] for n in range(count)]


def _page(frame: _Frame, drawn: Sequence[str], names: Sequence[str], unit: str, marks: Marks) -> str:
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" xmlns="http://www.w3.org/2000/svg"'
        ' font-family="sans-serif" font-size="11">'
    ]
    for n in range(TICKS + 1):
        value = frame.top * n / TICKS
        y = frame.y(value)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end" fill="#555">{_number(value)}</text>')
    for n in range(TICKS):
        time = frame.low + (frame.high - frame.low) * n / (TICKS - 1)
        anchor = "start" if n == 0 else "end" if n == TICKS - 1 else "middle"
        place = f'x="{frame.x(time)}" y="{HEIGHT - BOTTOM + 18}"'
        parts.append(f'<text {place} text-anchor="{anchor}" fill="#555">{_clock(time)}</text>')
        if frame.low == frame.high:
            break
    parts += drawn
    for time, words in marks:
        if frame.low <= time <= frame.high:
            x = frame.x(time)
            line = f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#222" stroke-dasharray="4 3"/>'
            parts.append(f"<g><title>{escape(words)}</title>{line}</g>")
    parts.append(f'<text x="{LEFT}" y="{TOP - 3}" fill="#555">{escape(unit)}</text></svg>')
    keys = "".join(
        f'<span><i style="background:{color}"></i>{escape(name)}</span>'
        for color, name in zip(_colors(len(names)), names, strict=True)
    )
    return f"<figure>{''.join(parts)}<figcaption>{keys}</figcaption></figure>"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def _clock(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%H:%M:%S")
