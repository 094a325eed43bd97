"""The page's actions against real receivers."""

from __future__ import annotations

import asyncio

import pytest

import rvq
from rvq.errors import OrderFailed
from rvq.web.orders import Orders


async def test_a_receiver_is_weighed_paused_resumed_and_drained(bus: rvq.Bus) -> None:
    orders = Orders(bus)
    async with asyncio.timeout(60), rvq.Receiver("work", bus=bus) as receiver:
        id = f"{receiver.id:016x}" if isinstance(receiver.id, int) else receiver.id
        while receiver.table is None:
            await asyncio.sleep(0.01)
        assert await orders.weight(id, "work", 3) == f"{id[:4]} has weight 3"
        assert await orders.pause("work", "default") == "work · default is paused: 1 receiver"
        assert receiver.paused
        assert await orders.resume("work", "default") == "work · default goes on: 1 receiver"
        assert not receiver.paused
        assert await orders.drain(id, "work") == f"{id[:4]} finishes what it has, and leaves"
        async for _ in receiver:
            raise AssertionError("nobody sent anything")


async def test_where_nobody_is_it_says_so(bus: rvq.Bus) -> None:
    with pytest.raises(OrderFailed):
        async with asyncio.timeout(60):
            await Orders(bus).pause("work", "default")
