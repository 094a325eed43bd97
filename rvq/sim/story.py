"""A world's story for a person: one line per thing that matters. Owns words, knows no promises.

Level 1 tells faults, switches, joins, starts and ends; level 2 also every frame that is sent. Level 0 keeps nothing,
so that a swarm does not pay for words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rvq.core.machine import Fan, Route, Target
from rvq.errors import WireError
from rvq.sim.clock import Clock
from rvq.wire import frames as f
from rvq.wire.codec import decode_control, peek, read_data_header

DATA_TYPES = frozenset({f.FrameType.DATA, f.FrameType.FRAGMENT, f.FrameType.TAIL})


class Story:
    """Lines of (when, who, what). With `out`, each is also handed on as it happens."""

    def __init__(self, clock: Clock, level: int = 0, out: Callable[[str], object] | None = None) -> None:
        self.level = level
        self.lines: list[str] = []
        self._clock = clock
        self._out = out
        self._names: dict[int, str] = {}
        self._tables_told: set[tuple[str, str, f.Version]] = set()

    def introduce(self, id: int, name: str) -> None:
        """From now on this id is called by its name."""
        self._names[id] = name

    def name_of(self, id: int) -> str:
        return self._names.get(id, f"{id:x}")

    def tell(self, who: str, what: str) -> None:
        if self.level:
            line = f"{self._clock.now:9.4f}  {who:<8} {self._with_names(what)}"
            self.lines.append(line)
            if self._out is not None:
                self._out(line)

    def overhear(self, who: str, target: Target, datagram: bytes) -> None:
        """A frame is sent: tables are told at level 1, everything at level 2."""
        try:
            kind, _ = peek(datagram)
            if kind == f.FrameType.TABLE:
                self._tell_table(who, decode_control(datagram))
            if self.level >= 2:
                route = target.route if isinstance(target, Fan) else target
                to = f"*{route.value}" if isinstance(route, Route) else str(route)
                self.tell(who, f"  -> {to:<8} {self._frame(kind, datagram)}")
        except WireError as error:
            self.tell(who, f"sent something that is no frame: {error}")

    def stamped(self, who: str, stamp: f.Stamp) -> None:
        """A sender announced a switch."""
        groups = [
            f"{entry.group} {self._members(entry.members)}{self._also('draining', entry.draining)}"
            f"{self._also('out', [silence.id for silence in entry.silent])}{self._also('gone', entry.gone)}"
            for entry in stamp.groups
            if entry.since == stamp.number
        ]
        self.tell(who, f"STAMP {stamp.number} from {stamp.at} on: {'; '.join(groups) or 'as before'}")

    def _tell_table(self, who: str, frame: f.Control) -> None:
        assert isinstance(frame, f.TableFrame)
        told = (frame.label, frame.group, frame.version)
        if told not in self._tables_told:
            self._tables_told.add(told)
            text = f"TABLE {frame.version.counter} of {frame.group} {self._members(frame.members)}"
            self.tell(who, text + self._also("draining", frame.draining))

    def _members(self, members: tuple[f.Member, ...]) -> str:
        return "[" + " ".join(self.name_of(m.id) + (f"x{m.weight}" if m.weight > 1 else "") for m in members) + "]"

    def _also(self, word: str, ids: Any) -> str:
        return f", {word} " + " ".join(map(self.name_of, ids)) if ids else ""

    def _with_names(self, text: str) -> str:
        """Ids that machines and checkers wrote in hexadecimal, whole or their first digits, become names."""
        for id, name in self._names.items():
            whole = f"{id:016x}"
            # A short id, chosen by hand, spells ordinary numbers too: only its whole spelling is surely meant.
            short = (f"{id:x}", whole[:8], whole[:4] + "…") if id >> 48 else ()
            for spelt in (whole, *short):
                if spelt in text:
                    text = text.replace(spelt, name)
        return text

    def _frame(self, kind: int, datagram: bytes) -> str:
        if kind in DATA_TYPES:
            head = read_data_header(datagram)
            words = f"{f.FrameType(kind).name} {head.first}+{head.count} stamp {head.stamp} done to {head.done_to}"
            return f"{words} ({len(datagram)} bytes)"
        frame = decode_control(datagram)
        fields = [f"{name}={self._value(getattr(frame, name))}" for name in frame.__dataclass_fields__]
        return f"{type(frame).__name__} " + " ".join(fields[1:])

    def _value(self, value: Any) -> str:
        """Numbers large enough to be ids become names; named tuples become plain ones."""
        if isinstance(value, tuple):
            return "(" + " ".join(map(self._value, value)) + ")"
        if type(value) is int and value in self._names:
            return self._names[value]
        return f"{value:.3f}" if isinstance(value, float) else str(value)
