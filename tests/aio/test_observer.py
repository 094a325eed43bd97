"""Looking on, on real sockets: a true picture of who is there, and not a word said."""

from __future__ import annotations

import asyncio
import logging
import os

import pytest

import rvq
from rvq.aio.observer import Observer
from rvq.errors import BadLabel, BusError, Closed
from rvq.transport import multicast
from tests.aio.ends import Worker, on_both_loops, soon


@on_both_loops
async def test_it_sees_labels_receivers_and_senders_as_they_are(bus: rvq.Bus) -> None:
    async with Observer(bus) as observer, rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        await sender.send_many(range(1000))
        await soon(sender.flush())
        await soon(observer.complete())
        picture = observer.snapshot()
        assert picture["bus"] == {"interface": "lo", "port": bus.port, "address": "239.192.0.0/16", "sealed": False}
        (label,) = picture["labels"]
        assert label["label"] == "work"
        ((receiver,), (seen,)) = label["groups"][0]["receivers"], label["senders"]
        assert (receiver["id"], receiver["pid"]) == (f"{worker.receiver.id:016x}", os.getpid())
        assert receiver["acked"] == 1000 and receiver["state"] == "in" and receiver["address"].startswith("127.0.0.1:")
        assert (seen["id"], seen["inserted"], seen["undone"]) == (f"{sender.id:016x}", 1000, 0)
        assert set(observer.history()["receivers"]) == {receiver["id"]}
        assert observer.found == ("work",)


async def test_it_is_told_when_there_is_something_new(bus: rvq.Bus) -> None:
    async with Observer(bus, "work") as observer:
        assert observer.snapshot()["labels"] == [{"label": "work", "groups": [], "senders": []}]
        async with rvq.Sender("work", bus=bus):
            await soon(observer.changed())
        assert observer.snapshot()["labels"][0]["senders"] or observer.snapshot()["events"] == []


async def test_on_an_empty_bus_it_waits_and_sees_nothing(bus: rvq.Bus) -> None:
    async with Observer(bus) as observer:
        await soon(observer.complete())
        assert observer.snapshot()["labels"] == []


async def test_whoever_waits_is_let_go_when_it_is_closed(bus: rvq.Bus) -> None:
    async with Observer(bus) as observer:
        waiting = asyncio.gather(observer.changed(), observer.complete())
        await asyncio.sleep(0)
        observer.close()
        observer.close()
        await soon(waiting)


async def test_an_address_that_cannot_be_joined_is_said_once(
    bus: rvq.Bus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened = multicast.open_multicast

    def scarce(of: rvq.Bus, interface: multicast.Interface, address: str) -> object:
        if address == bus.control_address("work"):
            raise BusError("too many open files")
        return opened(of, interface, address)

    monkeypatch.setattr(multicast, "open_multicast", scarce)
    with caplog.at_level(logging.WARNING, "rvq"):
        async with Observer(bus, ["work", "other"]) as observer:
            await soon(observer.complete())
    assert [record.getMessage() for record in caplog.records] == ["not all is seen: too many open files"]


async def test_wrong_use_is_told(bus: rvq.Bus) -> None:
    with pytest.raises(BadLabel):
        Observer(bus, "")
    observer = Observer(bus)
    with pytest.raises(Closed):
        observer.snapshot()
    async with observer:
        pass
    with pytest.raises(Closed):
        await observer.__aenter__()
