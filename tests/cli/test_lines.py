"""Lines from files, pipes and terminals."""

from __future__ import annotations

import asyncio
import os
import pty
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvq.cli import lines
from rvq.cli.lines import BLOCK_BYTES, BLOCKS_AHEAD, LineCutter, blocks, chunks
from rvq.errors import MessageTooLarge
from rvq.limits import MESSAGE_BYTES_MAX


@pytest.fixture
def pipe() -> Iterator[tuple[int, FileIO]]:
    """A descriptor to read, and a file to write."""
    reading, writing = os.pipe()
    with FileIO(reading), FileIO(writing, "w") as file:
        yield reading, file


def cut(*parts: bytes) -> list[bytes]:
    cutter = LineCutter()
    runs = [run for part in parts if (run := cutter.feed(part)) is not None]
    rest = cutter.rest()
    return runs if rest is None else [*runs, rest]


def test_lines_are_cut_at_newlines_and_whole_ones_are_given_at_once() -> None:
    assert cut(b"a\nb\nc", b"d\n", b"e") == [b"a\nb", b"cd", b"e"]


def test_an_empty_line_is_a_line() -> None:
    assert cut(b"\n") == [b""]
    assert cut(b"\n\n") == [b"\n"]
    assert cut(b"") == []


@given(st.lists(st.sampled_from([b"\n", b"x", b"yy\n", b"\n\n", b"z\r\n"])))
def test_nothing_is_added_or_lost_wherever_blocks_end(parts: list[bytes]) -> None:
    whole = b"".join(parts)
    expected = whole.removesuffix(b"\n").split(b"\n") if whole else []
    assert [line for run in cut(*parts) for line in run.split(b"\n")] == expected


def test_a_line_that_can_be_no_message_is_refused_before_it_fills_the_memory() -> None:
    cutter = LineCutter()
    part = b"x" * 2**20
    with pytest.raises(MessageTooLarge):
        for _ in range(MESSAGE_BYTES_MAX // len(part) + 1):
            cutter.feed(part)


async def collected(fd: int) -> list[bytes]:
    return [chunk async for chunk in chunks(fd)]


async def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    wanted = [str(number).encode() for number in range(200_000)]
    path.write_bytes(b"\n".join(wanted))
    fd = os.open(path, os.O_RDONLY)
    runs = await collected(fd)
    os.close(fd)
    assert b"\n".join(runs).split(b"\n") == wanted
    assert len(runs) > 2 and max(map(len, runs)) <= 2 * BLOCK_BYTES


async def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    fd = os.open(path, os.O_RDONLY)
    assert await collected(fd) == []
    os.close(fd)


async def test_a_line_in_a_pipe_is_given_when_it_arrives(pipe: tuple[int, FileIO]) -> None:
    reading, writing = pipe
    arriving = chunks(reading)
    for line in (b"one", b"two"):
        writing.write(line + b"\n")
        assert await asyncio.wait_for(anext(arriving), 5) == line
    writing.close()
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(anext(arriving), 5)


async def test_the_loop_goes_on_while_nothing_arrives(pipe: tuple[int, FileIO]) -> None:
    reading, writing = pipe
    waiting = asyncio.create_task(collected(reading))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not waiting.done()
    writing.close()
    assert await asyncio.wait_for(waiting, 5) == []


async def test_a_terminal_is_read_line_by_line() -> None:
    ours, theirs = pty.openpty()
    arriving = chunks(theirs)
    os.write(ours, b"typed\n")
    assert await asyncio.wait_for(anext(arriving), 5) == b"typed"
    os.write(ours, b"\x04")  # Ctrl-D
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(anext(arriving), 5)
    os.close(ours)
    os.close(theirs)


async def test_no_more_is_read_ahead_than_a_few_blocks(
    pipe: tuple[int, FileIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = pipe
    reads = 0
    real: Callable[[int, int], bytes] = os.read

    def counted(fd: int, size: int) -> bytes:
        nonlocal reads
        reads += 1
        return real(fd, 1)

    monkeypatch.setattr(lines.os, "read", counted)
    writing.write(b"x" * 1000)
    writing.close()
    arriving = blocks(reading)
    taken = 0
    async for _ in arriving:
        taken += 1
        assert reads <= taken + BLOCKS_AHEAD + 1
    assert taken == 1000


async def test_a_fault_while_reading_is_raised(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)  # a directory
    with pytest.raises(IsADirectoryError):
        await asyncio.wait_for(collected(fd), 5)
    os.close(fd)
