"""How somebody looks at a picture: what keys change, and which lines fit the screen. Owns no terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rvq.cli.board import SORTS, View, body, events, head
from rvq.cli.columns import Cell, Line, cut

EVENTS_PART = 4
"""One line in so many is kept for events, where there are any."""
HELP = "q quit   s sort   l label   p pause   ↑ ↓ scroll"

_UP, _DOWN = ("k", "\x1b[A", "\x1bOA"), ("j", "\x1b[B", "\x1bOB")
_PAGE_UP, _PAGE_DOWN = "\x1b[5~", "\x1b[6~"
_SEQUENCES = (*_UP[1:], *_DOWN[1:], _PAGE_UP, _PAGE_DOWN)


def keys_of(typed: str) -> list[str]:
    """What was typed, key by key; an arrow is one."""
    found = []
    while typed:
        key = next((sequence for sequence in _SEQUENCES if typed.startswith(sequence)), typed[0])
        found.append(key)
        typed = typed[len(key) :]
    return found


class Looking:
    """The order, the label, whether it is paused, and how far it is scrolled."""

    def __init__(self) -> None:
        self.view = View()
        self.paused = False
        self.top = 0
        self.over = False

    def press(self, key: str, labels: Sequence[str], page: int) -> None:
        """One of `keys_of`. `page`: lines that an arrow with a page moves."""
        if key in ("q", "Q"):
            self.over = True
        elif key == "s":
            self.view = self.view._replace(sort=_next(list(SORTS), self.view.sort))
        elif key == "l":
            self.view, self.top = self.view._replace(label=_next([None, *labels], self.view.label)), 0
        elif key in ("p", " "):
            self.paused = not self.paused
        else:
            self.top = max(0, self.top + self._move(key, page))

    def _move(self, key: str, page: int) -> int:
        if key in _UP or key == _PAGE_UP:
            return -1 if key in _UP else -page
        if key in _DOWN or key == _PAGE_DOWN:
            return 1 if key in _DOWN else page
        return 0

    def compose(self, picture: dict[str, Any], width: int, height: int) -> list[Line]:
        """Exactly so many lines, none wider than that."""
        top = head(picture, width, self._note())
        lines = body(picture, width, self.view) or [(Cell("nobody is heard on this bus yet", "dim"),)]
        happened = events(picture, width, height, self.view)
        kept = min(len(happened), height // EVENTS_PART) + 1 if happened else 0
        lines = self._scrolled(lines, max(1, height - len(top) - 1 - kept))
        room = height - len(top) - len(lines) - 1
        if happened and room > 1:
            lines += [(Cell("events", "bold"),), *happened[-(room - 1) :]]
        filled = [cut(line, width) for line in [*top, *lines][: height - 1]]
        filled += [()] * (height - 1 - len(filled))
        return [*filled, cut((Cell(HELP, "dim"),), width)]

    def _note(self) -> str:
        notes = [self.view.label or "", f"by {self.view.sort}" if self.view.sort != "id" else ""]
        return " ".join([*filter(None, notes), *(["PAUSED"] if self.paused else [])])

    def _scrolled(self, lines: list[Line], shown: int) -> list[Line]:
        if len(lines) <= shown:
            self.top = 0
            return lines
        self.top = min(self.top, len(lines) - shown + 1)
        left = len(lines) - self.top - (shown - 1)
        more = Cell(f"  … {left} more line{'s' * (left != 1)}: ↓" if left else "  (end)", "dim")
        return [*lines[self.top : self.top + shown - 1], (more,)]


def _next(names: Sequence[Any], name: Any) -> Any:
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]
