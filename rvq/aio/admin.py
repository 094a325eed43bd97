"""Orders to receivers that run: drain one, change its weight, pause a group and let it go on.

Owns giving them and saying what became of them; who is meant, and for how long it is asked, is `core.asker`'s.

On a bus without a key anybody may give orders.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from dataclasses import dataclass

from rvq.aio.driver import Driver, Signal, monotonic
from rvq.aio.fanout import on_bus, open_endpoint
from rvq.aio.observer import Observer
from rvq.aio.sealing import keys_of
from rvq.bus import Bus, check_bus
from rvq.core.asker import AskerMachine, Wish
from rvq.errors import BadArgument, OrderFailed
from rvq.limits import WEIGHT_MAX
from rvq.names import check_group, check_label
from rvq.wire.frames import ID_BITS, OrderKind

ID_DIGITS = 16
"""Of an id in hexadecimal, as commands and logs print it."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order that was carried out: the receivers that did it, or had done so before."""

    label: str
    group: str
    receivers: tuple[str, ...]


async def drain(id: str | int, *, label: str | None = None, bus: Bus | None = None, by: str | None = None) -> Ordered:
    """Have a receiver finish what is its own, and go: as if its process got SIGTERM.

    id: `receiver.id`, or the first hexadecimal digits of it, as many as make clear who is meant.
    label: what it listens to; looked up among all labels of the bus unless told, which takes about two seconds.
    by: who asks, for its log; host and process unless told.
    """
    return await _ask_one(label, Wish(OrderKind.DRAIN, check_id(id)), bus, by)


async def weight(
    id: str | int, weight: int, *, label: str | None = None, bus: Bus | None = None, by: str | None = None
) -> Ordered:
    """Give a receiver another weight, 1 to 64: from the next table on, its share of new messages follows it."""
    if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= WEIGHT_MAX:
        raise BadArgument(f"weight={weight!r} is not a weight: give a whole number from 1 to {WEIGHT_MAX}")
    return await _ask_one(label, Wish(OrderKind.WEIGHT, check_id(id), weight), bus, by)


async def pause(label: str, group: str = "default", *, bus: Bus | None = None, by: str | None = None) -> Ordered:
    """Have all receivers of a group start nothing more until `resume`. What runs finishes, and nothing is lost."""
    return await _ask(label, Wish(OrderKind.PAUSE, check_group(group)), bus, by)


async def resume(label: str, group: str = "default", *, bus: Bus | None = None, by: str | None = None) -> Ordered:
    """Have a paused group go on."""
    return await _ask(label, Wish(OrderKind.RESUME, check_group(group)), bus, by)


def check_id(id: str | int) -> str:
    """An id, or the beginning of one, as hexadecimal digits. BadArgument if it cannot be one."""
    if isinstance(id, int) and not isinstance(id, bool) and 0 < id < 2**ID_BITS:
        return f"{id:0{ID_DIGITS}x}"
    digits = id.lower() if isinstance(id, str) else ""
    if not digits or len(digits) > ID_DIGITS or set(digits) - set("0123456789abcdef"):
        raise BadArgument(f"id={id!r:.60} is not the id of a receiver: give up to {ID_DIGITS} digits of 0-9 and a-f")
    return digits


async def _ask_one(label: str | None, wish: Wish, bus: Bus | None, by: str | None) -> Ordered:
    """An order to one receiver, of whatever label."""
    bus = check_bus(bus)
    if label is None:
        label, id = await find(wish.whom, bus)
        wish = wish._replace(whom=id)
    return await _ask(label, wish, bus, by)


async def find(id: str, bus: Bus) -> tuple[str, str]:
    """The label and the whole id of the receiver whose id begins so, as everybody tells the directory of the bus."""
    async with Observer(bus) as observer:
        await observer.complete()
        picture = observer.snapshot()
    found = [
        (entry["label"], receiver["id"])
        for entry in picture["labels"]
        for group in entry["groups"]
        for receiver in group["receivers"]
        if receiver["id"].startswith(id)
    ]
    if len(found) == 1:
        return found[0]
    labels = ", ".join(sorted({repr(label) for label, _ in found}))
    if not found:
        raise OrderFailed(f"no receiver {id} of any label is there: `rvq top --once` shows who is")
    if len({whole for _, whole in found}) == 1:
        raise OrderFailed(f"{id} listens to {labels}: say which is meant (label=, --label)")
    raise OrderFailed(f"{id} begins the ids of {len(found)} receivers of {labels}: give more digits")


async def _ask(label: str, wish: Wish, bus: Bus | None, by: str | None) -> Ordered:
    """Until it is known what became of it."""
    label, bus = check_label(label), check_bus(bus)
    who = check_group(by if by is not None else f"{socket.gethostname()}:{os.getpid()}")
    keys = keys_of(bus)
    endpoint = open_endpoint(bus, label, data=False)
    changed = Signal()
    machine = AskerMachine(
        label,
        secrets.randbits(ID_BITS) or 1,
        wish,
        nonce=secrets.randbits(ID_BITS),
        by=who,
        timings=bus.timings,
        now=monotonic(),
        wall_offset=time.time() - monotonic(),
    )
    driver = Driver(on_bus(machine, bus, keys, label, data=False), endpoint, changed.fire)
    try:
        while not machine.over:  # which it is in the end, whatever is heard
            await changed.wait()
    finally:
        driver.close()
    if machine.fault is not None:
        raise OrderFailed(machine.fault)
    assert machine.group is not None
    return Ordered(label, machine.group, tuple(f"{id:0{ID_DIGITS}x}" for id in machine.ordered))
