"""What is fuzzed: each decoder as a function of bytes. Any bytes are either read, or refused with that decoder's own
error; what is read and can be written again is the same when it is read again.

Whatever else comes out is a bug, and an assertion that fails is one too.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from ipaddress import IPv4Address
from pathlib import Path
from random import Random
from typing import Final

from rvq import Bus
from rvq.cli import values
from rvq.cli.bodies import texts_of
from rvq.core.stats import Stats
from rvq.errors import BusError, JournalError, LedgerError, RvqError, SparkError, WireError
from rvq.journal import JournalReader
from rvq.journal.recovery import recover
from rvq.journal.verify import verify
from rvq.keyfile import read_keys
from rvq.ledger.mark import Mark, row_of
from rvq.sim.storage import MemoryStorage
from rvq.spark.options import read_options
from rvq.wire.batch import Batch, Stamped, encode_batch
from rvq.wire.codec import decode_control, encode_control, peek, read_data_header
from rvq.wire.fragments import Whole, read_fragment
from rvq.wire.frames import FrameType
from rvq.wire.keys import Key
from rvq.wire.records import Record, Records, read_record
from rvq.wire.seal import Channel, Sealer, cipher_for, read_header, read_proof, unseal, unseal_train
from rvq.wire.stored import read_stored
from rvq.wire.train import read_train

Target = Callable[[bytes], object]


def control(data: bytes) -> None:
    with suppress(WireError):
        peek(data)
    try:
        frame = decode_control(data)
    except WireError:
        return
    assert decode_control(encode_control(frame, peek(data)[1])) == frame


def batch(data: bytes) -> None:
    try:
        header = read_data_header(data)
        found = Batch(data, header)
        found.plain_bodies(range(0, found.count, 3))
        found.contents(range(found.count))
        found.check()
        found.offsets()
    except WireError:
        return


def fragment(data: bytes) -> None:
    try:
        found = read_fragment(data, read_data_header(data))
    except WireError:
        return
    Whole(found, found.data).contents(range(1))


def train(data: bytes) -> None:
    """The first two bytes are the size of the frames."""
    size, datagram = int.from_bytes(data[:2], "big"), data[2:]
    try:
        found = read_train(datagram, size)
        if found is not None:
            found.plain_bodies(range(0, found.count, 2))
            found.contents(range(min(found.count, 5000)))
    except WireError:
        return


def record(data: bytes) -> None:
    """The first byte is the kind. What is read can be put in a frame, and is the same there."""
    kind, body = data[0] if data else 0, data[1:]
    try:
        content = read_record(kind, body)
    except WireError:
        return
    if len(body) < 50_000 and (kind != 4 or content.urgent):
        at = Stamped(1, 1, 1, 1, 1.0, 0, 0)
        frame = encode_batch(at, Records.of([Record(kind, body, 0xFFFF)]))
        again = Batch(frame, read_data_header(frame)).contents(range(1))[0]
        assert again is not None and repr(again) == repr(content)


@cache
def _sealer() -> tuple[Sealer, Key]:
    key = Key(bytes(range(32)))
    return Sealer(key, bytes(16), b"fuzz"), key


def sealed(data: bytes) -> None:
    sealer, key = _sealer()
    with suppress(WireError):
        read_header(data)
    with suppress(WireError):
        read_proof(data)
    cipher = cipher_for(key, sealer.salt, b"fuzz")
    assert unseal(cipher, data) is None or data[:4] == b"rvqs"
    unseal_train(cipher, data, max(1, len(data) // 3), 1)
    assert unseal(cipher, sealer.seal(Channel.DATA, data)) == data


def stored(data: bytes) -> None:
    """The first two bytes are kind and flags."""
    kind, flags, payload = data[0] if data else 0, data[1] if len(data) > 1 else 0, data[2:]
    try:
        found = read_stored(kind, flags, payload)
        if found.count <= 65_536:
            found.records()
            found.contents()
    except WireError:
        return


# --- the journal ------------------------------------------------------------------------------------------------------


@cache
def _journal() -> dict[Path, bytes]:
    """A good one, as files."""
    from tests.journal.samples import ROOT, disk, write

    storage = disk()
    write(storage, range(1, 6), size=300).close(1_790_000_100.0)
    write(storage, range(1, 3), recorder=2).abort()
    return {path: _contents(storage, path) for path in _files(storage, ROOT)}


def _files(storage: MemoryStorage, folder: Path) -> list[Path]:
    found = []
    for name in storage.list(folder) or ():
        path = folder / name
        found += _files(storage, path) if storage.list(path) is not None else [path]
    return found


def _contents(storage: MemoryStorage, path: Path) -> bytes:
    file = storage.open(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def _journal_with(changed: Path, data: bytes) -> MemoryStorage:
    storage = MemoryStorage(Random(1))
    for path, contents in _journal().items():
        storage.make_folder(path.parent)
        file = storage.create(path)
        file.write(0, data if path == changed else contents)
        file.sync()
        file.close()
    return storage


def _read_all(storage: MemoryStorage) -> None:
    from tests.journal.samples import ROOT

    with suppress(JournalError):
        verify(ROOT, storage=storage)
    with suppress(JournalError):
        reader = JournalReader(ROOT, storage=storage)
        for label in reader.labels():
            for _, start in reader.head(label).items():
                for _ in reader.entries(label, start):
                    pass
            reader.seek_time(label, 1_790_000_003.0)
    with suppress(JournalError):
        recover(storage, ROOT)
    with suppress(JournalError):
        verify(ROOT, storage=storage)


def _one_of(data: bytes, suffix: str) -> tuple[Path, bytes]:
    """Which file, by the first byte; and its contents with these bytes written over it at a place, or in its stead."""
    paths = sorted(path for path in _journal() if path.name.endswith(suffix))
    path = paths[(data[0] if data else 0) % len(paths)]
    if len(data) < 4 or data[1] & 1:
        return path, data[2:]
    good = bytearray(_journal()[path])
    at = int.from_bytes(data[2:4], "big") % (len(good) + 1)
    good[at : at + len(data) - 4] = data[4:]
    return path, bytes(good)


def segment(data: bytes) -> None:
    _read_all(_journal_with(*_one_of(data, SEGMENTS)))


def index(data: bytes) -> None:
    _read_all(_journal_with(*_one_of(data, INDEXES)))


def marker(data: bytes) -> None:
    _read_all(_journal_with(*_one_of(data, ".json")))


# --- options, files of keys, and what people type ---------------------------------------------------------------------


def keyfile(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bus.key"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(data)
        try:
            keys = read_keys(path)
        except BusError:
            return
        assert keys.in_use.id in keys.live


def ledger_mark(data: bytes) -> None:
    words = data.decode("utf-8", "surrogateescape").split("\0")
    label, group, sender, sequence = (*words, "", "", "", "")[:4]
    numbers = [int(word) if word.isascii() and word.isdigit() else word for word in (sender[:40], sequence[:40])]
    with suppress(LedgerError, RvqError):
        row = row_of(Mark(label, group, *numbers))  # type: ignore[arg-type]
        assert -(2**63) <= row[2] < 2**63 and -(2**63) <= row[3] < 2**63


def bus_options(data: bytes) -> None:
    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        return
    names = {"interface", "port", "address", "ttl", "key"}
    names |= {"heartbeat", "expiry", "lease", "settle", "orphan_for", "report"}
    if isinstance(given, dict):
        with suppress(BusError):
            bus = Bus(**{name: value for name, value in given.items() if name in names})
            assert IPv4Address(bus.data_address("work")).is_multicast


def spark_options(data: bytes) -> None:
    lines = data.decode("utf-8", "replace").splitlines()
    options = dict(line.split("=", 1) for line in lines if "=" in line)
    for streaming in (False, True):
        with suppress(SparkError):
            read_options(options, streaming=streaming)


def typed(data: bytes) -> None:
    """Every kind of value that a command takes."""
    import argparse

    text = data.decode("utf-8", "surrogateescape")
    readers = (values.count, values.weight, values.seconds, values.moment, values.span, values.sync, values.rate)
    for read in (*readers, values.factor, values.identity, values.run, values.filled, values.seconds_above_0):
        with suppress(argparse.ArgumentTypeError):
            read(text)
    texts_of(data)


def web_order(data: bytes) -> None:
    """What is posted to the page, carried out by one who does nothing."""
    import asyncio

    from aiohttp import web

    from rvq.web.actions import act

    class Nobody:
        async def drain(self, id: str, label: str) -> str:
            assert len(id) == 16
            return id

        async def weight(self, id: str, label: str, weight: int) -> str:
            assert len(id) == 16 and 1 <= weight <= 64
            return id

        async def pause(self, label: str, group: str) -> str:
            return label

        async def resume(self, label: str, group: str) -> str:
            return label

    class Posted:
        content_type = "application/json"

        async def text(self) -> str:
            return data.decode("utf-8", "replace")

    response = asyncio.run(act(Nobody(), Posted()))  # type: ignore[arg-type]
    assert isinstance(response, web.Response) and response.status in (200, 400, 409)


def machines(data: bytes) -> None:
    """A receiver and a sender at work, which hear this from anywhere."""
    from rvq.core.receiver import ReceiverMachine
    from rvq.core.sender import SenderMachine
    from rvq.timings import Timings

    timings, about = Timings(), Stats()
    assert about.bad_frames == 0
    sender = SenderMachine("work", 1, timings=timings, random=Random(1), now=0.0, wall_offset=1e9)
    receiver = ReceiverMachine("work", 2, group="default", weight=1, timings=timings, random=Random(2), now=0.0)
    for now in (0.0, 0.3, 0.7, 0.8, 1.0):
        for end, other, name in ((sender, receiver, "s"), (receiver, sender, "r")):
            end.wake(now)
            for _, datagram in end.take_outgoing():
                other.receive(now, datagram, name)
    for source in ("x", "s", "r"):
        for end in (sender, receiver):
            end.receive(1.0, data, source)
            end.receive(1.0, data, source, max(1, len(data) // 2))
            end.wake(1.1)
            end.check_invariants()
            assert len(end.take_outgoing()) < 1000


SEGMENTS, INDEXES = ".rvqj", ".idx"

TARGETS: Final[dict[str, Target]] = {
    "control": control,
    "batch": batch,
    "fragment": fragment,
    "train": train,
    "record": record,
    "sealed": sealed,
    "stored": stored,
    "segment": segment,
    "index": index,
    "marker": marker,
    "keyfile": keyfile,
    "ledger_mark": ledger_mark,
    "bus_options": bus_options,
    "spark_options": spark_options,
    "typed": typed,
    "web_order": web_order,
    "machines": machines,
}

assert FrameType.DATA == 1
