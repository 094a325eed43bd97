"""Who sends to a label now."""

from __future__ import annotations

import rvq
from rvq.aio.live import live_streams
from tests.aio.ends import Stranger, Worker


async def test_those_that_are_heard_are_live_and_no_others(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as one, rvq.Sender("work", bus=bus) as two, rvq.Sender("other", bus=bus):
        assert await live_streams("work", bus) == {one.id, two.id}
    assert await live_streams("work", bus) == set()


async def test_noise_is_nobody(bus: rvq.Bus) -> None:
    with Stranger(bus) as stranger:
        async with Worker(bus), rvq.Sender("work", bus=bus) as sender:
            stranger.send(b"?" * 40)
            assert await live_streams("work", bus) == {sender.id}
