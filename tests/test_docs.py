"""The examples in docs/ are what the code does: frames decode as is said of them, addresses come out as printed."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import fields
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rvq import limits
from rvq.aio.consume import ATTEMPTS
from rvq.bus import Bus
from rvq.core.shards import deal, draft
from rvq.core.stream import CLOCK_S_WARN
from rvq.wire import frames
from rvq.wire.batch import Stamped, encode_batch, read_batch
from rvq.wire.codec import DATA_HEADER, HEADER, SHAPES, decode_control, read_data_header
from rvq.wire.frames import DataFlag, FrameType, MissingParts, Nak
from rvq.wire.records import Attribute, Content, Kind, Records, make_record, make_records
from rvq.wire.stored import SHARE_HEADER, STRIDE, ShareFlag, StoredKind

DOCS = Path(__file__).parents[1] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text()


def printed_frame(first_line: str) -> bytes:
    """The bytes of a dump: all hex pairs at the start of its lines, up to the end of the block."""
    block = page("protocol.md").split(first_line, 1)[1].split("```", 1)[0]
    pairs = [
        re.match(r"\s*((?:[0-9a-f]{2}\s+)*[0-9a-f]{2}(?=\s|$))", line) for line in (first_line + block).splitlines()
    ]
    return bytes.fromhex("".join(found[1] for found in pairs if found))


def test_the_printed_data_frame_reads_as_it_says() -> None:
    datagram = printed_frame("72 76 71 01  01 06 00 03")
    batch = read_batch(datagram)
    assert (batch.first, batch.count, batch.stamp) == (41, 3, 3)
    assert batch.shards is not None
    assert list(batch.shards) == [0xFFFF, 0xFFFF, 255]
    assert batch.contents(range(3)) == [Content(b"a"), Content(b"bcd"), Content({"job": 1}, "user-7")]
    records = [make_record(b"a"), make_record(b"bcd"), make_record({"job": 1}, key="user-7")]
    assert encode_batch(stamped(datagram, 100_000), Records.of(records)) == datagram


def test_the_printed_even_and_padded_frame_reads_as_it_says() -> None:
    datagram = printed_frame("72 76 71 01  01 19 00 02")
    batch = read_batch(datagram)
    assert (batch.first, batch.count, batch.stamp, batch.shards) == (44, 2, 3, None)
    assert batch.contents(range(2)) == [Content(b"one"), Content(b"two")]
    assert encode_batch(stamped(datagram, 108_285), make_records([b"one", b"two"]), 67) == datagram


def stamped(datagram: bytes, position: int) -> Stamped:
    """What the sender of a printed frame said, and the position before it."""
    header = read_data_header(datagram)
    assert header.label_tag == frames.label_tag("work")
    assert f"position {header.position}: {position} before it, {len(datagram)} bytes, 8192\n" in page("protocol.md")
    return Stamped(
        header.label_tag, header.stamp, header.stream, header.first, header.sent_at, header.done_to, position
    )


def test_the_printed_control_frame_reads_as_it_says() -> None:
    frame = decode_control(printed_frame("72 76 71 01  23 00 00 00"))
    assert frame == Nak(0x0102030405060708, 0x1122334455667788, (5, 9, 12, 12), (MissingParts(7, (0, 3)),))


@pytest.mark.parametrize("kind", SHAPES, ids=lambda kind: FrameType(kind).name)
def test_every_control_frame_has_its_row(kind: int) -> None:
    shape, _ = SHAPES[kind]
    names = ", ".join(f"`{field.name}`" for field in fields(shape)[1:])
    assert f"| {kind} | {FrameType(kind).name} | {names} |" in page("protocol.md")


@pytest.mark.parametrize(
    "part",
    [
        frames.Version,
        frames.Member,
        frames.Echo,
        frames.GroupState,
        frames.ShardsDone,
        frames.Silence,
        frames.GroupStamp,
        frames.Moved,
        frames.LaneQuestion,
        frames.LaneProgress,
        frames.LaneAnswer,
        frames.Tried,
        frames.HandledRun,
        frames.StreamReport,
        frames.Heard,
        frames.MissingParts,
    ],
)
def test_every_part_of_a_control_frame_is_spelt_out(part: Any) -> None:
    assert f"`[{', '.join(part._fields)}]`" in page("protocol.md")


@pytest.mark.parametrize("kind", [FrameType.DATA, FrameType.FRAGMENT, FrameType.TAIL])
def test_every_data_frame_has_its_section(kind: FrameType) -> None:
    assert f"\n### {kind.name} ({kind.value}): " in page("protocol.md")


def test_the_printed_structs_are_those_in_use() -> None:
    text = page("protocol.md")
    assert f'`struct.Struct("{HEADER.format}")`' in text
    assert f'`struct.Struct("{DATA_HEADER.format}")`' in text
    assert f'`struct.Struct("{SHARE_HEADER.format}")`' in text
    assert f'`struct.Struct("{STRIDE.format}")`' in text


def test_the_printed_bounds_are_those_in_use() -> None:
    text = page("protocol.md")
    assert f"`count` messages (1 to {limits.FRAME_MESSAGES_MAX:,})" in text
    assert f"and {limits.FLIGHT_COST_BYTES:,} for each of them" in text
    assert f"at most {limits.HANDLED_RUNS_MAX}: of the lane" in text
    assert f"tells it what it does (HANDLED); at most {limits.RECORDERS_MAX} of them" in text
    assert f"`count` messages are here, 1 to {limits.STORED_MESSAGES_MAX:,}" in text


def test_flags_kinds_and_attributes_are_as_printed() -> None:
    text = page("protocol.md")
    for number in (*DataFlag, *Kind, *frames.Outcome, *StoredKind):
        assert f"| {number.name} | {number.value} |" in text
    assert f"and STRIDE ({ShareFlag.STRIDE.value})" in text
    for attribute, name in zip(Attribute, ("key", "headers", "due at", "time to live"), strict=True):
        assert f"| {name} | {attribute.value} |" in text


def test_the_shard_map_as_described_is_the_one_in_use() -> None:
    # Written from the page alone, turn by turn and without any short cut.
    def blake(data: bytes, size: int, person: bytes) -> bytes:
        assert f"person={person!r}".replace("'", '"') in page("protocol.md")
        return blake2b(data, digest_size=size, person=person).digest()

    members = (frames.Member(7, 2), frames.Member(2**62 + 1, 1), frames.Member(2**62 + 2, 3))
    scattered = sorted(range(1024), key=lambda shard: blake(shard.to_bytes(2, "big"), 64, b"rvq scatter"))
    copies = [(member.id, copy) for member in members for copy in range(member.weight)]
    ranked, places = [], []
    for slot, (id, copy) in enumerate(copies):
        bits = int.from_bytes(blake(id.to_bytes(8, "big") + copy.to_bytes(2, "big"), 8, b"rvq wishes"), "big")
        offset, factor, start, step = (bits >> 10 * place & 1023 for place in range(4))
        ranked.append((bits >> 40, slot))
        places.append(
            [(scattered[((step | 1) * t + start) % 1024] * (factor | 1) + offset) % 1024 for t in range(1024)]
        )
    owner: dict[int, int] = {}
    for turn, (_, slot) in product(range(1024), sorted(ranked)):
        has = Counter(owner.values())
        over = 1024 % 6 - sum(count > 1024 // 6 for count in has.values())
        if places[slot][turn] not in owner and has[slot] < 1024 // 6 + (over > 0):
            owner[places[slot][turn]] = slot
    assert tuple(owner[shard] for shard in range(1024)) == draft(members)


def test_the_next_shard_map_as_described_is_the_one_in_use() -> None:
    """Written from the page alone, one shard at a time."""
    before = (frames.Member(7, 2), frames.Member(8, 1), frames.Member(9, 4), frames.Member(11, 1))
    after = (frames.Member(5, 2), frames.Member(7, 3), frames.Member(9, 3), frames.Member(11, 1), frames.Member(12, 1))
    old = [(member.id, copy) for member in before for copy in range(member.weight)]
    slots = [(member.id, copy) for member in after for copy in range(member.weight)]
    was = [old[slot] for slot in draft(before)]
    has = Counter(id for id, _ in was)
    share, over = divmod(1024, len(slots))
    more: Counter[int] = Counter()
    for id, weight in after:
        while over > 0 and more[id] < weight and has[id] > weight * share + more[id]:
            more[id], over = more[id] + 1, over - 1
    for id, weight in after:
        while over > 0 and more[id] < weight:
            more[id], over = more[id] + 1, over - 1
    room = {}
    for id, weight in after:
        most = sorted(range(weight), key=lambda copy: (-was.count((id, copy)), copy))[: more[id]]
        room |= {(id, copy): share + (copy in most) for copy in range(weight)}
    owner: dict[int, tuple[int, int]] = {}

    def take(shard: int, slot: tuple[int, int]) -> None:
        if shard not in owner and room.get(slot, 0):
            owner[shard], room[slot] = slot, room[slot] - 1

    for shard in range(1024):
        take(shard, was[shard])
    for slot, shard in product(slots, range(1024)):
        if was[shard][0] == slot[0]:
            take(shard, slot)
    while len(owner) < 1024:
        for slot in slots:
            take(min(set(range(1024)) - owner.keys(), default=0), slot)
    assert tuple(slots.index(owner[shard]) for shard in range(1024)) == deal(before, draft(before), after)


def test_the_worked_example_of_an_address_comes_out() -> None:
    text = page("multicast.md")
    bus = Bus()
    assert f"= {bus.data_address('work')}\ncontrol = {bus.control_address('work')}\n" in text


@pytest.mark.parametrize("number", range(5))
def test_the_code_of_the_page_on_work_runs(number: int, tmp_path: Path, port: int) -> None:
    code = [code for code in re.findall(r"```python\n(.*?)```", page("work.md"), re.DOTALL) if "import" in code]
    assert len(code) == 5
    environment = os.environ | {"RVQ_PORT": str(port), "PYTHONUNBUFFERED": "1"}
    program = [sys.executable, "-W", "error", "-c", code[number]]
    listener = [sys.executable, "-c", LISTENER]
    with closing(sqlite3.connect(tmp_path / "bank.db")) as database:
        database.execute("CREATE TABLE accounts (name TEXT, balance INTEGER)")
    options: Any = {"cwd": tmp_path, "env": environment, "stderr": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen(listener, env=environment) as receiving,
        subprocess.Popen(program, **options) as running,
    ):
        try:
            if "rvq.consume(" in code[number] and "# await" not in code[number]:  # goes on until it is told to end
                with pytest.raises(subprocess.TimeoutExpired):
                    running.wait(2)
                running.terminate()
                assert running.wait(30) in (0, -signal.SIGTERM)
            else:
                assert running.wait(30) == 0
        finally:
            running.kill()
            receiving.kill()
        assert running.stderr is not None
        assert "Traceback" not in running.stderr.read()


LISTENER = """
import asyncio, rvq

async def main():
    await asyncio.gather(*(rvq.consume(label, str) for label in ("work", "reminders")))

asyncio.run(main())
"""


def test_the_page_on_work_says_what_the_code_does() -> None:
    text = page("work.md")
    assert f"`attempts` times in all ({ATTEMPTS} unless told)" in text
    assert f"when it is above {CLOCK_S_WARN} s" in text
    assert f"If {limits.RETAINED_BYTES // limits.MIB} MiB of them wait" in text
