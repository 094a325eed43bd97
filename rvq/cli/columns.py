"""Tables as lines of text that fit a width. Owns which columns go first where there is no room; knows no terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

GAP = "  "


class Cell(NamedTuple):
    """A text, and how it should look: a style's name as `rich` knows it, or nothing."""

    text: str
    style: str = ""


Line = tuple[Cell, ...]
"""What stands in one line, from left to right."""


class Column(NamedTuple):
    """rank: the higher, the sooner it is left out; 0 never."""

    title: str
    rank: int = 0
    right: bool = False


def fit(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int | None, indent: str = "") -> list[Line]:
    """A title line and the rows. Columns are left out until it is no wider than `width`; what still is, is cut."""
    shown = list(range(len(columns)))
    widths = [max(len(column.title), *(len(row[n].text) for row in rows), 0) for n, column in enumerate(columns)]
    while width is not None and len(indent) + _total(widths, shown) > width:
        last = max(shown, key=lambda n: (columns[n].rank, n))
        if columns[last].rank == 0:
            break
        shown.remove(last)
    titles = [Cell(column.title, "dim") for column in columns]
    return [cut(_line(columns, row, widths, shown, indent), width) for row in (titles, *rows)]


def cut(line: Line, width: int | None) -> Line:
    """No wider than that; what is cut off ends in a dot or two."""
    if width is None or sum(len(cell.text) for cell in line) <= width:
        return line
    left: list[Cell] = []
    room = max(0, width - 1)
    for cell in line:
        left.append(Cell(cell.text[:room], cell.style))
        room -= len(left[-1].text)
        if room == 0:
            break
    return (*left, Cell("…" if width else ""))


def plain(line: Line) -> str:
    """Without styles."""
    return "".join(cell.text for cell in line).rstrip()


def _total(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[n] for n in shown) + len(GAP) * (len(shown) - 1)


def _line(
    columns: Sequence[Column], row: Sequence[Cell], widths: Sequence[int], shown: Sequence[int], indent: str
) -> Line:
    cells: list[Cell] = [Cell(indent)] if indent else []
    for place, n in enumerate(shown):
        text = row[n].text.rjust(widths[n]) if columns[n].right else row[n].text.ljust(widths[n])
        if place:
            cells.append(Cell(GAP))
        cells.append(Cell(text, row[n].style))
    return tuple(cells)
