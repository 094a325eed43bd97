"""Ends on a bus with peers, on real sockets: work, looking on, orders, dead letters and taps; and who is let near."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import rvq
from rvq.aio.fanout import Internet, look_around
from rvq.aio.live import live_streams
from rvq.aio.observer import Observer
from rvq.errors import BusError
from rvq.journal import JournalReader
from rvq.journal.messages import messages
from rvq.wire.frames import PeerAddress
from tests.aio.ends import Worker, on_both_loops, soon


@pytest.fixture
def bus(port: int) -> rvq.Bus:
    return rvq.Bus(port=port, peers=["127.0.0.1"])


@on_both_loops
async def test_everything_is_done_once_and_seen(bus: rvq.Bus) -> None:
    async with Observer(bus) as observer, rvq.Sender("work", bus=bus) as sender, Worker(bus), Worker(bus):
        await sender.send_many(range(1000))
        await soon(sender.flush())
        await soon(observer.complete())
        picture = observer.snapshot()
        assert picture["bus"]["peers"] == ["127.0.0.1"]
        (label,) = picture["labels"]
        assert [seen["id"] for seen in label["senders"]] == [f"{sender.id:016x}"]
        assert sum(receiver["acked"] for receiver in label["groups"][0]["receivers"]) == 1000
        assert await live_streams("work", bus) == {sender.id}


async def test_orders_reach_those_whom_they_are_for(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus), Worker(bus) as worker:
        ordered = await soon(rvq.admin.pause("work", "default", bus=bus))
        assert ordered.receivers == (f"{worker.receiver.id:016x}",)
        assert worker.receiver.paused


async def test_recorders_record(bus: rvq.Bus, tmp_path: Path) -> None:
    async with rvq.Recorder(tmp_path, ["work"], bus=bus), rvq.Sender("work", bus=bus) as sender:
        await sender.send_many(range(10))
        await soon(sender.flush())
    reader = JournalReader(tmp_path)
    found = list(messages(reader, "work"))
    assert sorted(one.content.body for one in found) == list(range(10))


@on_both_loops
async def test_a_sealed_bus_is_sealed_all_through(port: int) -> None:
    bus = rvq.Bus(port=port, peers=["127.0.0.1"], key=bytes(range(32)))
    other = rvq.Bus(port=port, peers=["127.0.0.1"], key=bytes(32))
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus):
        await sender.send_many(range(100))
        await soon(sender.flush())
        found, _ = await look_around(bus, "play", 0.5)
        strangers, _ = await look_around(other, "play", 0.5)
        assert len(found) == 2 and not strangers
        assert sender.stats.strangers > 0


async def test_whoever_is_gone_is_sent_nothing_more(bus: rvq.Bus) -> None:
    async with Worker(bus) as worker:
        async with rvq.Sender("work", bus=bus) as sender:
            await sender.send("a")
        driven = worker.receiver._driver._machine  # type: ignore[union-attr]

        async def forgotten() -> None:
            while driven.peers:  # type: ignore[attr-defined]
                await asyncio.sleep(0.01)

        await asyncio.wait_for(forgotten(), 2.0)  # said, and not found out by a silence of four seconds


def test_others_addresses_are_asked_only_where_ends_can_be() -> None:
    internet = Internet(rvq.Bus(port=7400, peers=[]))
    assert internet.read(PeerAddress("127.0.0.1", 40_000)) == ("127.0.0.1", 40_000)
    assert internet.spell(("127.0.0.1", 40_000)) == PeerAddress("127.0.0.1", 40_000)
    far = [("10.0.0.1", 7400), ("239.192.0.1", 7400), ("0.0.0.0", 7400), ("255.255.255.255", 7400), ("a name", 7400)]
    ports = [("127.0.0.1", 53), ("127.0.0.1", 0), ("127.0.0.1", 70_000)]
    assert [internet.read(PeerAddress(*place)) for place in far + ports] == [None] * 8


async def test_a_seed_that_cannot_be_reached_is_refused_at_once(port: int) -> None:
    with pytest.raises(BusError, match="which lo does not leave"):
        async with rvq.Sender("work", bus=rvq.Bus(port=port, peers=["10.0.0.1"])):
            pass


async def test_a_name_is_found_too(port: int) -> None:
    bus = rvq.Bus(port=port, peers=["localhost"])
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus):
        await sender.send("a")
        await soon(sender.flush())
