"""The page's actions as orders on the bus. Owns the words of what came of them; the orders are `rvq.aio.admin`'s."""

from __future__ import annotations

from rvq.aio import admin
from rvq.aio.admin import Ordered
from rvq.bus import Bus

BY = "rvq top --web"
"""Who asks, as receivers log it."""


class Orders:
    """Carries out what the page asks for. OrderFailed if nobody did it."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def drain(self, id: str, label: str) -> str:
        return f"{_who(await admin.drain(id, label=label, bus=self._bus, by=BY))} finishes what it has, and leaves"

    async def weight(self, id: str, label: str, weight: int) -> str:
        return f"{_who(await admin.weight(id, weight, label=label, bus=self._bus, by=BY))} has weight {weight}"

    async def pause(self, label: str, group: str) -> str:
        return f"{label} · {group} is paused: {_count(await admin.pause(label, group, bus=self._bus, by=BY))}"

    async def resume(self, label: str, group: str) -> str:
        return f"{label} · {group} goes on: {_count(await admin.resume(label, group, bus=self._bus, by=BY))}"


def _who(ordered: Ordered) -> str:
    return ", ".join(id[:4] for id in ordered.receivers)


def _count(ordered: Ordered) -> str:
    return f"{len(ordered.receivers)} receiver{'s' * (len(ordered.receivers) != 1)}"
