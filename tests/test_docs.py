"""The examples in docs/ are what the code does: frames decode as is said of them, addresses come out as printed."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import zlib
from collections import Counter
from contextlib import closing
from dataclasses import fields
from hashlib import blake2b
from itertools import product
from pathlib import Path
from struct import Struct
from typing import Any

import pytest

from rvq import limits
from rvq.aio.checkup.examination import LOSS_BYTES_MAX, MANY
from rvq.aio.checkup.probing import BURST, FLIGHT_BYTES, PACE_S
from rvq.aio.consume import ATTEMPTS
from rvq.bus import Bus
from rvq.cli.checkup.judging import LOSS_BROKEN
from rvq.core import about, asker, fanout, peers
from rvq.core.fanout import bus_tag, channel_of
from rvq.core.machine import Route
from rvq.core.sealers import AGAIN_S, SILENT_S
from rvq.core.sealing import WORDS_S
from rvq.core.shards import deal, draft
from rvq.core.stats import Stats
from rvq.core.stream import CLOCK_S_WARN
from rvq.core.window import WINDOW
from rvq.journal import Entry, EntryKind, Journal, layout
from rvq.journal.index import MARK_EVERY_BYTES
from rvq.timings import Timings
from rvq.transport.multicast import SEND_BUFFER_BYTES
from rvq.wire import frames
from rvq.wire.batch import Stamped, encode_batch, read_batch
from rvq.wire.codec import DATA_HEADER, HEADER, SHAPES, decode_control, read_data_header
from rvq.wire.frames import DataFlag, FrameType, MissingParts, Nak
from rvq.wire.keys import Key
from rvq.wire.records import Attribute, Content, Kind, Records, make_record, make_records
from rvq.wire.seal import COUNTER_MAX, OVERHEAD, Channel, SealKind, cipher_for, read_header, unseal
from rvq.wire.seal import HEADER as SEAL_HEADER
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


def test_the_printed_words_of_a_peer_read_as_they_say() -> None:
    joined = (channel_of("work", Route.CONTROL), channel_of("work", Route.DATA))
    known = (frames.PeerAddress("10.0.0.2", 7400),)
    said = frames.Peers(0x0102030405060708, bus_tag(Bus().name), 0x1122334455667788, 0, False, joined, known)
    assert decode_control(printed_frame("72 76 71 01  31 00 00 00")) == said
    assert joined[1] == 4 * frames.label_tag("work") and channel_of(None, Route.ABOUT) == 2


def test_the_numbers_of_a_bus_without_multicast_are_as_printed() -> None:
    text = page("protocol.md")
    assert f"after {peers.ASK_S:g} s and then twice as long each time, up to {peers.ASK_S_MAX:g} s" in text
    assert f"others for {peers.NEWCOMER_S:g} s; those who fell silent for {peers.FORMER_S:g} s" in text
    assert f"about once a second, less often among more than {fanout.HERES_PER_S}" in text and fanout.HERE_S == 1
    assert f"at most {limits.PEERS_TOLD_MAX}: the next frame" in text and fanout.SILENT_HERES == 4
    assert f"at most {limits.CHANNELS_MAX}; none" in text and f"with more than {fanout.UNASKED_MAX} says" in text
    assert f"{limits.HEARSAY_BURST} are asked at once and {limits.HEARSAY_PER_S} in a second" in text
    assert f"knows {limits.PEERS_MAX:,} others at most" in text and limits.PEERS_ASKED_MAX == limits.PEERS_MAX
    text = page("multicast.md")
    assert f"the {limits.SEED_PORTS - 1} after it" in text and f"at most {limits.SEED_PORTS} |" in text
    assert f"There are {limits.SEEDS_MAX} entries at most" in text and f"bounded to {limits.PEERS_MAX:,}" in text
    assert f"allows {limits.FANOUT_WINDOW_BYTES // limits.MIB} MiB in flight" in text


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
        frames.Pause,
        frames.MissingParts,
        frames.PeerAddress,
    ],
)
def test_every_part_of_a_control_frame_is_spelt_out(part: Any) -> None:
    assert f"`[{', '.join(part._fields)}]`" in page("protocol.md")


@pytest.mark.parametrize("word", [*frames.OrderKind, *frames.OrderOutcome], ids=lambda word: word.name)
def test_every_order_and_outcome_has_its_row(word: Any) -> None:
    assert f"\n| {word.name} | {word.value} |" in page("protocol.md")


def test_the_printed_patience_of_orders_is_the_one_in_use() -> None:
    text = page("protocol.md")
    assert f"for {asker.LISTEN_BEATS:g} heartbeats" in text
    assert f"after {asker.PATIENCE_EXPIRIES:g} `expiry`" in text
    assert f"(one of the last {limits.ORDERS_REMEMBERED_MAX})" in text


@pytest.mark.parametrize("kind", [FrameType.DATA, FrameType.FRAGMENT, FrameType.TAIL])
def test_every_data_frame_has_its_section(kind: FrameType) -> None:
    assert f"\n### {kind.name} ({kind.value}): " in page("protocol.md")


def test_the_printed_sealed_datagram_opens_as_it_says() -> None:
    datagram = printed_frame("72 76 71 73 c5 3d")
    key, salt = Key(bytes(range(32))), bytes(range(0x64, 0x74))
    assert unseal(cipher_for(key, salt, Bus(key=key.secret).name), datagram) == b"frame"
    assert read_header(datagram)[1:] == (key.id, salt, 1, SealKind.FRAME, Channel.CONTROL, 42)
    text = page("protocol.md")
    assert all(f"{kind.name} ({kind.value})" in text for kind in SealKind)
    assert all(f"{channel.name.lower()} ({channel.value})" in text for channel in Channel)
    assert f"a sealed frame is {OVERHEAD} bytes longer" in text and f"window of {WINDOW:,} counters" in text
    assert f"silent for {SILENT_S:g} s" in text and f"at most 2^{COUNTER_MAX.bit_length() - 1} |" in text
    assert f"younger than {WORDS_S:g} s" in text and f"after {AGAIN_S * 1000:g} ms" in text


def test_what_is_said_of_security_is_what_is_in_force() -> None:
    text = page("security.md")
    assert f"{limits.UNKNOWN_SALTS_PER_S * limits.UNKNOWN_SALT_BUCKETS:,} a second" in text
    assert f"window of {WINDOW:,} numbers" in text and f"{OVERHEAD} bytes for each frame" in text
    assert f"silent for {SILENT_S:g} s" in text and f"\n{limits.STRANGERS_NAMED_MAX} of them" in text


def test_the_printed_sizes_and_timings_are_the_defaults() -> None:
    text, timings = page("operations.md"), Timings()
    assert f"| {limits.RETAINED_BYTES // limits.MIB} MiB | rides out" in text
    assert f"keeps up to {limits.RECEIVED_BYTES // limits.MIB} MiB of frames" in text
    assert (
        f"| {limits.RECEIVE_BUFFER_BYTES // limits.MIB} MiB to receive, {SEND_BUFFER_BYTES // limits.MIB} MiB" in text
    )
    assert f"| `heartbeat` | {timings.heartbeat:g} s |" in text and f"| `expiry` | {timings.expiry:g} s," in text
    assert f"| `lease` | {timings.lease:g} s," in text and f"| `orphan_for` | {timings.orphan_for:g} s," in text
    Timings(heartbeat=0.5, expiry=2, lease=2, orphan_for=6)


def test_what_is_said_of_the_doctor_is_what_it_does() -> None:
    text = page("multicast.md")
    assert Bus().doctors_address in text and f"From {LOSS_BROKEN:.0%}".replace("%", " %") in text
    assert f"{MANY:,} probes of a full frame each ({LOSS_BYTES_MAX:,} bytes" in text
    assert f"{BURST / PACE_S:,.0f} a second and {FLIGHT_BYTES // 1024} KiB on their way" in text
    assert f"More than {CLOCK_S_WARN:g} s apart" in text


def test_the_printed_structs_are_those_in_use() -> None:
    text = page("protocol.md")
    assert f'`struct.Struct("{HEADER.format}")`' in text
    assert f'`struct.Struct("{DATA_HEADER.format}")`' in text
    assert f'`struct.Struct("{SEAL_HEADER.format}")`' in text
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
    assert f"+ 1 = {bus.directory_address}\n" in text and f"    '{bus.directory_address}'\n" in text
    digest = blake2b(b"\0directory", digest_size=8)
    assert f"digest    = {digest.hexdigest()}\n" in text
    pair = int(digest.hexdigest(), 16) % 32768
    assert f"mod 32768 = {pair}\ndirectory = 239.192.0.0 + {2 * pair} + 1 = " in text


def test_the_pace_of_introductions_is_as_printed() -> None:
    text = page("protocol.md")
    assert f"every second; sooner, after {about.ABOUT_S / about.SOON} s," in text and about.ABOUT_S == 1.0
    assert f"more than {limits.ABOUTS_PER_S} ends of its label" in text and about.SOON == 4
    assert f"in that order; at most {limits.COUNTERS_MAX}." in text
    assert f"at most {limits.OBSERVED_LABELS_MAX} of them" in page("multicast.md")


def programs(path: str) -> list[Any]:
    """The blocks of a page that are meant to be pasted and run."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS.parent / path).read_text(), re.DOTALL)
    return [pytest.param(code, id=f"{path} {number}") for number, code in enumerate(blocks)]


PAGES = ("README.md", "docs/work.md", "docs/ledger.md", "docs/journal.md")


def test_every_block_of_code_is_run() -> None:
    counts = {"README.md": 3, "docs/work.md": 7, "docs/ledger.md": 1, "docs/journal.md": 1}
    assert {path: len(programs(path)) for path in PAGES} == counts
    # Those of the page on Spark need Spark and end never; the same calls are made in tests/spark/.
    others = {path.relative_to(DOCS.parent).as_posix() for path in DOCS.glob("*.md")} - {*PAGES, "docs/spark.md"}
    assert not [path for path in others if programs(path)]


@pytest.mark.parametrize("code", [code for path in PAGES for code in programs(path)])
def test_the_code_of_a_page_runs_as_pasted(code: str, tmp_path: Path, port: int) -> None:
    environment = os.environ | {"RVQ_PORT": str(port), "PYTHONUNBUFFERED": "1"}
    program = [sys.executable, "-W", "error", "-c", code]
    listener = [sys.executable, "-c", LISTENER]
    with closing(sqlite3.connect(tmp_path / "bank.db")) as database:
        database.execute("CREATE TABLE accounts (name TEXT, balance INTEGER)")
    options: Any = {"cwd": tmp_path, "env": environment, "stderr": subprocess.PIPE, "text": True}
    goes_on = re.search(r"^[^#]*(rvq\.consume|Receiver)\(", code, re.MULTILINE)
    with (
        subprocess.Popen(listener, env=environment) as receiving,
        subprocess.Popen(program, **options) as running,
    ):
        try:
            if goes_on:  # until it is told to end
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


def test_every_counter_has_its_row() -> None:
    counters = [field.name for field in fields(Stats) if field.name not in ("lanes", "shards")]
    assert (
        re.findall(r"^\| `(\w+)` \| .*\|.*\|$", page("work.md").split("## Counters")[1], re.MULTILINE)[: len(counters)]
        == counters
    )


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


# --- the journal --------------------------------------------------------------------------------------------------

STRUCTURES = {
    "Segment header, 1024 bytes, written once:": layout.SEGMENT,
    "Watermark, 64 bytes, two of them:": layout.WATERMARK,
    "Footer, 64 bytes:": layout.FOOTER,
    "Block header, 64 bytes:": layout.BLOCK,
    "Index header, 32 bytes:": layout.INDEX,
    "Then marks, 32 bytes each, in order:": layout.MARK,
}


def printed_rows(heading: str) -> list[list[str]]:
    """The cells of the first table behind a line of the page on the journal, without its head."""
    table = page("journal.md").split(f"\n{heading}\n", 1)[1].lstrip("\n").split("\n\n", 1)[0]
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]]


@pytest.mark.parametrize("heading", STRUCTURES)
def test_the_structures_of_the_journal_are_as_printed(heading: str) -> None:
    structure = STRUCTURES[heading]
    at, expected = 0, []
    for name, code in structure.fields:
        expected.append([str(at), code, name])
        at += Struct(f"<{code}").size
    rows = printed_rows(heading)
    assert [row[:3] for row in rows] == expected
    assert at == structure.size == int(re.findall(r"(\d+) bytes", heading)[0])
    if structure.magic:
        assert rows[0][3] == structure.magic.decode()


def test_every_structure_of_the_journal_is_printed() -> None:
    assert set(STRUCTURES.values()) == {value for value in vars(layout).values() if isinstance(value, layout.Layout)}


def test_the_columns_of_a_block_are_as_printed() -> None:
    at, expected = 0, []
    for name, code, width in layout.COLUMNS:
        assert Struct(f"<{code}").size == width
        expected.append([name, code, f"{at} *n*"])
        at += width
    [heading] = [line for line in page("journal.md").splitlines() if line.startswith("Body: for *n* entries seven")]
    assert [row[:3] for row in printed_rows(heading)] == expected
    assert (at, layout.PADDED_TO) == (24, 8)


def test_the_numbers_of_the_journal_are_as_printed() -> None:
    text = page("journal.md")
    for kind in EntryKind:
        assert f"| {kind.name} | {kind.value} |" in text
    assert ", ".join(f"{state.value} {state.name.lower()}" for state in layout.State) in text
    assert f"| {layout.SEGMENT.size} | watermark, of even serials |" in text
    assert [layout.Watermark(layout.State.OPEN, serial, layout.Extent()).at for serial in (2, 1)] == [1024, 2048]
    assert f"| {layout.HEADER_BYTES} | blocks, " in text
    assert f"At most {limits.JOURNAL_BLOCK_BYTES_MAX:,}\n".replace("\n", " |") in text
    assert f"about every {MARK_EVERY_BYTES:,} bytes" in text
    assert f"at {limits.JOURNAL_UNSYNCED_BYTES // limits.MIB} MiB of it the commit syncs unasked" in text
    assert f"| {layout.FORMAT}. Later versions keep" in text


def test_a_journal_can_be_read_by_the_page_alone(tmp_path: Path) -> None:
    """Written from docs/journal.md, with nothing of rvq.journal's reading side."""
    with Journal.open(tmp_path, group="journal", recorder=0xAB, segment_bytes=4500) as journal:
        for number in range(6):
            journal.writer("a/b").add(Entry(1, 5, ("10.0.0.1", 7), 100.0 + number, 3, bytes([number]) * (100 + number)))
            journal.writer("a/b").add(Entry(3, 0, None, 100.5 + number, 0, b"control"))
            journal.commit(7200.0)
        journal.close(7200.0)
    found, row = [], 0
    for path in sorted((tmp_path / "label=a%2Fb" / "part=1970010102").glob("00000000000000ab-*.rvqj")):
        data, row = path.read_bytes(), 0
        seed = int.from_bytes(data[1020:1024], "little")
        assert (data[:8], data[8:12], zlib.crc32(data[:1020])) == (b"rvq jrnl", b"\1\0\0\0", seed)
        marks = [Struct("<4sIQQQddQ4sI").unpack_from(data, at) for at in (1024, 2048)]
        mark = max(marks, key=lambda fields: fields[2])
        at, limit = 4096, mark[3]
        while at < limit:
            head = Struct("<4sIQQQddII4sI").unpack_from(data, at)
            assert (head[0], head[2], head[3]) == (b"rvqB", at, row)
            assert zlib.crc32(data[at : at + 60], seed) == head[10]
            assert zlib.crc32(data[at + 64 : at + head[1]], seed) == head[8]
            n, body, start = head[7], at + 64, 0
            columns = Struct(f"<{n}d{n}I{n}I{n}I{n}H{n}B{n}B").unpack_from(data, body)
            for e in range(n):
                heard, end, rows, address, port, kind, flags = columns[e::n]
                payload = data[body + 24 * n + start : body + 24 * n + end]
                found.append((kind, flags, address, port, heard, rows, payload))
                start = end
            at, row = at + head[1], row + head[4]
        assert (row, mark[1]) == (mark[4], 2)
        assert data[at : at + 4] == b"rvqF" and len(data) == at + 64
    assert found == [
        fields
        for n in range(6)
        for fields in (
            (1, 5, 0x0A000001, 7, 100.0 + n, 3, bytes([n]) * (100 + n)),
            (3, 0, 0, 0, 100.5 + n, 0, b"control"),
        )
    ]
