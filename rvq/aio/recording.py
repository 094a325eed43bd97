"""One label as a recorder follows it. Owns its sockets and its machine, and what of each frame goes to the disk."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random

from rvq.aio.driver import Driver, Signal, level_of, logger, monotonic
from rvq.aio.fanout import on_bus, open_endpoint
from rvq.aio.home import here
from rvq.aio.sealing import keys_of
from rvq.bus import Bus
from rvq.core.recorder import RecorderMachine
from rvq.core.stats import Stats
from rvq.core.table import TableView
from rvq.core.taken import Taken
from rvq.journal import Entry, EntryKind, Writer
from rvq.journal.runs import RunSet
from rvq.limits import MIB

BATCH_BYTES = 8 * MIB
"""Of one label that go to disk at once: enough for one sync to be for many frames, and soon done."""
FRAMES_PER_LOOK = 64
"""Frames between looks whether that is reached."""


class Recording:
    """A recorder's end on one label. `on_work` is called when there is something for the disk, or it has left."""

    def __init__(
        self,
        label: str,
        id: int,
        group: str,
        bus: Bus,
        writer: Writer,
        on_work: Callable[[], None],
        on_table: Callable[[str, TableView], None] | None = None,
        known: Mapping[int, RunSet] | None = None,
    ) -> None:
        """known: by sender, what those before us have left in the journal: it is done, and not stored again."""
        self.label = label
        self._bus = bus
        self._writer = writer
        self._on_work = on_work
        self._on_table = on_table
        self._known = dict(known or {})
        self._shown: TableView | None = None
        self._changed = Signal()
        keys = keys_of(bus)
        endpoint = open_endpoint(bus, label, data=True)
        self._machine = RecorderMachine(
            label,
            id,
            group=group,
            timings=bus.timings,
            random=Random(secrets.randbits(64)),
            now=monotonic(),
            wall_offset=time.time() - monotonic(),
            receive_bytes=endpoint.receive_buffer_bytes,
            home=here(),
        )
        self._driver = Driver(on_bus(self._machine, bus, keys, label, data=True), endpoint, self._on_change)

    # --- onto the disk --------------------------------------------------------------------------------------------

    def take(self, now: float) -> list[Taken]:
        """Hands what there is to the writer, up to a batch's worth. It is done when it is `stored`."""
        machine, add = self._machine, self._writer.add
        heard_at = machine.wall.read(now)
        for datagram, source in machine.history():
            add(Entry(EntryKind.CONTROL, 0, _source_of(source), heard_at, 0, datagram))
        taken: list[Taken] = []
        while self._writer.added_bytes < BATCH_BYTES:
            some = machine.take(now, FRAMES_PER_LOOK)
            if not some:
                break
            for one in self._unknown(some) if self._known else some:
                kind, flags, payload = one.block()
                add(Entry(kind, flags, None, heard_at, len(one.sequences), payload))
            taken += some
        return taken

    def _unknown(self, taken: Iterable[Taken]) -> Iterator[Taken]:
        """Without what is in the journal."""
        for one in taken:
            known = self._known.get(one.stream)
            new = one if known is None else one.without(known.has)
            if new is not None:
                yield new

    def stored(self, now: float, taken: Iterable[Taken]) -> None:
        """These are on disk: now they are done."""
        self._machine.stored(now, taken)
        if not self._driver.closed:
            self._driver.step()

    # --- leaving --------------------------------------------------------------------------------------------------

    def leave(self, *, drain: bool) -> None:
        """Begin to leave: with `drain`, what is ours is still to be stored."""
        self._machine.leave(monotonic(), drain=drain)
        self._driver.step()

    @property
    def left(self) -> bool:
        return self._machine.left

    async def hand_back(self) -> None:
        """Leave, and wait until senders know what was stored here; not for long."""
        self.leave(drain=False)
        try:
            async with asyncio.timeout(self._bus.expiry):
                while not self.left:
                    await self._changed.wait()
        except TimeoutError:
            pass  # no sender confirmed it: whoever inherits may record the last of it again

    def close(self) -> None:
        """Twice is fine."""
        self._machine.say_goodbye()
        self._driver.close()

    # --- looking --------------------------------------------------------------------------------------------------

    @property
    def machine(self) -> RecorderMachine:
        """For those who only look, from another thread."""
        return self._machine

    @property
    def stats(self) -> Stats:
        return self._machine.stats

    @property
    def table(self) -> TableView | None:
        return self._machine.table

    def _on_change(self) -> None:
        machine = self._machine
        self._changed.fire()
        if machine.ready or machine.left or machine.chronicle:
            self._on_work()
        for event in machine.events:
            logger.log(level_of(event), "recorder %.4s… of %s: %s", f"{machine.id:016x}", self.label, event)
        machine.events.clear()
        table = machine.table
        if self._on_table is not None and table is not None and table != self._shown:
            self._shown = table
            self._on_table(self.label, table)


def _source_of(address: object) -> tuple[str, int] | None:
    return address[:2] if isinstance(address, tuple) else None
