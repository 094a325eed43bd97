"""Sealed buses under asyncio: real sockets, key files that change, strangers with another key or none."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import rvq
from rvq.aio import sealing
from rvq.aio.live import live_streams
from rvq.aio.sealing import frame_bytes, keys_of
from rvq.keyfile import Keys, create_keys, new_key, read_keys, replace_keys
from rvq.wire.seal import OVERHEAD, is_sealed
from tests.aio.ends import Stranger, Worker, bodies, members, on_both_loops, soon, stays, until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_keys(tmp_path / "bus.key", Keys([new_key()]))
    return tmp_path / "bus.key"


@pytest.fixture
def sealed(bus: rvq.Bus, path: Path) -> rvq.Bus:
    return replace(bus, key=str(path))


@on_both_loops
async def test_messages_of_all_sizes_arrive_and_not_one_frame_is_plain(sealed: rvq.Bus) -> None:
    sent = [b"small", "text", {"n": 1}, bytes(200_000)]
    with Stranger(sealed) as stranger:
        async with rvq.Sender("work", bus=sealed) as sender, rvq.Receiver("work", bus=sealed) as receiver:
            await sender.send_many([*sent, *(b"m%d" % n for n in range(5000))])
            assert await bodies(receiver, 4) == sent
            found = await bodies(receiver, 5000)
            assert found == [b"m%d" % n for n in range(5000)]
        heard = stranger.overhear()
        assert heard and all(map(is_sealed, heard))
        assert not any(b"small" in datagram or b"work" in datagram for datagram in heard)


async def test_a_key_can_be_bytes(bus: rvq.Bus) -> None:
    sealed = replace(bus, key=bytes(range(32)))
    async with rvq.Sender("work", bus=sealed) as sender, Worker(sealed) as worker:
        await sender.send(b"x")
        await until(lambda: worker.bodies == [b"x"])


async def test_taps_groups_and_those_who_only_listen_are_on_the_sealed_bus_too(sealed: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=sealed) as sender, Worker(sealed), Worker(sealed, group="b"):
        await until(lambda: len(sender.tables) == 2)
        async with rvq.Receiver("work", group=None, bus=sealed) as tap:
            assert await live_streams("work", sealed) == {sender.id}
            await sender.send(b"x")
            assert await bodies(tap, 1) == [b"x"]


@pytest.mark.parametrize("other", ["no key", "another key"])
async def test_a_stranger_gets_nothing_disturbs_nothing_and_both_sides_say_so(
    sealed: rvq.Bus, bus: rvq.Bus, other: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rvq")
    strange = bus if other == "no key" else replace(bus, key=bytes(range(32)))
    async with rvq.Sender("work", bus=sealed) as sender, Worker(sealed) as worker:
        async with Worker(strange) as foreign, rvq.Receiver("work", group=None, bus=strange) as tap:
            await until(lambda: foreign.receiver.stats.strangers and worker.receiver.stats.strangers)
            await until(lambda: sender.stats.strangers and tap.stats.strangers)
            await sender.send_many([b"x"] * 500)
            await soon(sender.flush())
            assert len(worker.messages) == 500 and not foreign.messages
            tables = list(sender.tables.values())
            assert [table.members for table in tables] == [(worker.receiver.id,)]
            assert tap.stats.emitted == foreign.receiver.stats.routed == 0
            async with rvq.Sender("work", bus=strange) as liar:
                await liar.send(b"forged")
                await until(lambda: len(foreign.messages) == 1)
        assert b"forged" not in worker.bodies
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert all("stranger at 127.0.0.1:" in line for line in warned) and warned
    assert len(warned) == len(set(warned)), "once for each peer"


async def test_a_bus_is_rekeyed_while_it_runs_and_nothing_is_lost(
    sealed: rvq.Bus, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "LOOK_S", 0.01)
    old, new = read_keys(path).in_use, new_key()
    async with rvq.Sender("work", bus=sealed) as sender, Worker(sealed) as one, Worker(sealed) as two:
        await members([one.receiver, two.receiver], 2)
        seals = [end._driver._machine for end in (sender, one.receiver, two.receiver)]  # type: ignore[union-attr]
        count = 0
        for keys in (Keys([old, new]), Keys([old, new], new), Keys([new])):
            replace_keys(path, keys)
            while any(seal._keys != keys for seal in seals):  # type: ignore[attr-defined]
                await sender.send(count)
                count += 1
        await sender.send("last")
        await soon(sender.flush())
        assert sorted(map(str, one.bodies + two.bodies)) == sorted(map(str, [*range(count), "last"]))
        assert all(end.stats.strangers == 0 for end in (sender, one.receiver, two.receiver))


async def test_a_key_file_that_changes_while_an_end_is_opened_is_read_again(
    sealed: rvq.Bus, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading the keys and looking at the file: or it would go on with the old ones for good."""
    monkeypatch.setattr(sealing, "LOOK_S", 0.01)
    old, new = read_keys(path).in_use, new_key()

    def read_and_change(where: Path) -> Keys:
        keys = read_keys(where)
        replace_keys(path, Keys([old, new], new))
        return keys

    with monkeypatch.context() as changing:
        changing.setattr(sealing, "read_keys", read_and_change)
        receiver = await rvq.Receiver("work", bus=sealed).__aenter__()
    try:
        await until(lambda: receiver._driver._machine._keys == Keys([old, new], new))  # type: ignore[union-attr]
    finally:
        await receiver.aclose()


FORKING = """
import asyncio, os, sys, rvq

async def main():
    bus = rvq.Bus(port=int(sys.argv[1]), key=bytes(range(32)))
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        child = os.fork()
        if not child:
            try:
                sender._driver._machine._sealer.seal(1, b"with the parent's counter")
            except rvq.BusError as error:
                os.write(1, str(error).encode())
            os._exit(0)
        os.waitpid(child, 0)
        await sender.send("goes on")
        print(";", (await anext(receiver)).body)

asyncio.run(main())
"""


def test_a_child_process_seals_nothing_with_the_counters_of_its_parent(bus: rvq.Bus) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKING, str(bus.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    child, _, parent = done.stdout.partition(";")
    assert "opened before a fork: open another" in child, done.stderr
    assert parent.strip() == "goes on"


async def test_a_key_file_that_is_spoilt_while_it_is_used_changes_nothing_and_is_said(
    sealed: rvq.Bus, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sealing, "LOOK_S", 0.01)
    async with rvq.Sender("work", bus=sealed) as sender, Worker(sealed) as worker:
        path.chmod(0o644)
        await until(lambda: "chmod 600" in caplog.text)
        path.unlink()
        await until(lambda: "no key file" in caplog.text)
        await sender.send(b"x")
        await until(lambda: worker.bodies == [b"x"])


async def test_noise_changes_nothing(sealed: rvq.Bus) -> None:
    with Stranger(sealed) as stranger:
        async with rvq.Sender("work", bus=sealed) as sender, Worker(sealed) as worker:
            for size in (0, 1, 4, 31, 33, 39, 40, 56, 1000):
                stranger.send(b"?" * size)
                stranger.send((b"rvqs" + b"?" * size)[:size])
            heard = stranger.overhear()
            for datagram in heard:
                stranger.send(datagram)
                for length in range(0, len(datagram), 7):
                    stranger.send(datagram[:length])
            await sender.send(b"x")
            await until(lambda: worker.bodies == [b"x"])
            assert worker.receiver.stats.bad_frames
            await stays(lambda: len(worker.messages) == 1, 0.1)


@pytest.mark.parametrize("end", [rvq.Sender, rvq.Receiver])
async def test_without_its_key_file_nothing_is_opened(bus: rvq.Bus, tmp_path: Path, end: type) -> None:
    with pytest.raises(rvq.BusError, match="no key file"):
        async with end("work", bus=replace(bus, key=tmp_path / "none")):
            pass


def test_frames_leave_room_for_the_seal(bus: rvq.Bus) -> None:
    assert frame_bytes(bus, 1472) == 1472 and keys_of(bus) is None
    assert frame_bytes(replace(bus, key=bytes(32)), 1472) == 1472 - OVERHEAD
