"""One group of a label as an observer knows it: its table, and who of it is in which state.

Tables are heard only when they are written. Who comes later pieces the one in force together from what its members say
of themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rvq.core.observed.ends import SeenReceiver
from rvq.core.observed.happenings import Happenings, Switch, hex_id, short
from rvq.core.table import Table, slots_of
from rvq.wire.frames import NO_VERSION, TableFrame, Version

TABLES_MAX = 8
"""Tables of one group that were heard and are kept: heartbeats that speak of one may come before it, or later."""


class SeenGroup:
    """The receivers of one group."""

    def __init__(self, label: str, name: str, happenings: Happenings) -> None:
        self.label = label
        self.name = name
        self.receivers: dict[int, SeenReceiver] = {}
        self.version: Version = NO_VERSION
        """The newest table that anyone of it belongs to."""
        self._tables: dict[Version, Table] = {}
        self._switch: Switch | None = None
        self._happenings = happenings

    def heard_table(self, frame: TableFrame) -> None:
        """A keeper wrote one. It counts when somebody says that it belongs to it."""
        if frame.version not in self._tables:
            self._tables[frame.version] = Table(frame.version, frame.members, frame.draining)
        while len(self._tables) > TABLES_MAX:
            del self._tables[min(self._tables)]

    @property
    def table(self) -> Table | None:
        """The newest one, if it was heard."""
        return self._tables.get(self.version)

    def update(self, wall: float, receiver: SeenReceiver, *, watched: bool) -> None:
        """A receiver spoke. `watched`: long enough that what is new here is new."""
        if receiver.version > self.version:
            was, self.version = self.version, receiver.version
            self._switch = self._happenings.switch(wall, self.label, self.name, self.version)
            if was != NO_VERSION or watched:
                text = f"table {self.version.counter} of {self.name}, by {short(self.version.keeper)}"
                self._happenings.tell(wall, self.label, self.name, self.version.keeper, "table", text)
        self._fill_switch()
        if not receiver.was_in and self.has(receiver):
            receiver.was_in = True
            if watched:
                text = f"{short(receiver.id)} joined {self.name}"
                self._happenings.tell(wall, self.label, self.name, receiver.id, "joined", text)

    def has(self, receiver: SeenReceiver) -> bool:
        """Is it in the table in force, as a member?"""
        table = self.table
        if table is not None:
            return table.has(receiver.id) and receiver.id not in table.draining
        return receiver.version == self.version != NO_VERSION and not receiver.leaving

    def is_out(self, receiver: SeenReceiver) -> bool:
        """Was it in a table, and is in none any more?"""
        table = self.table
        if table is not None:
            return not table.has(receiver.id)
        return receiver.version < self.version

    def drop(self, receiver: SeenReceiver) -> None:
        """It is gone. What nobody who is there says any more does not count: a stranger may have said it."""
        del self.receivers[receiver.id]
        self.version = max((other.version for other in self.receivers.values()), default=self.version)

    def slots(self) -> tuple[int, ...]:
        """The owner of each slot; 0 where that is not known yet."""
        if self.table is not None:
            return slots_of(self.table.members)
        told = [r.about for r in self.receivers.values() if r.about and r.about.version == self.version]
        count = max((about.slots for about in told), default=0)
        owners = [0] * count
        for about in told:
            for slot in range(about.first_slot, min(count, about.first_slot + about.own_slots)):
                owners[slot] = about.source
        return tuple(owners)

    def _fill_switch(self) -> None:
        if self._switch is not None and not self._switch.known:
            self._switch.slots = self.slots()

    def state(self, receiver: SeenReceiver, silent: bool) -> str:
        if silent:
            return "silent"
        if receiver.leaving or (self.table is not None and receiver.id in self.table.draining):
            return "draining"
        if receiver.about is not None and receiver.about.paused:
            return "paused"
        return "in" if self.has(receiver) else "joining"

    def picture(self, now: float, silent: Iterable[int]) -> dict[str, Any]:
        quiet, owners = frozenset(silent), self.slots()
        places: dict[int, list[int]] = {}
        for slot, owner in enumerate(owners):
            places.setdefault(owner, []).append(slot)
        lately = {id: receiver.done_lately(now) for id, receiver in self.receivers.items()}
        done = sum(lately.values())
        rows = []
        for id, receiver in sorted(self.receivers.items()):
            index = places.get(id, [])
            share = lately[id] / done if done else len(index) / max(1, len(owners))
            state = self.state(receiver, id in quiet)
            rows.append({**receiver.picture(now), "state": state, "index": index, "share": round(share, 4)})
        return {
            "group": self.name,
            "version": [self.version.counter, hex_id(self.version.keeper)],
            "slots": len(owners),
            "paused": any(row["state"] == "paused" for row in rows),
            "receivers": rows,
        }
