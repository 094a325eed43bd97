"""Writing to what may be slow, or gone."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import pytest

from rvq.cli.output import Output

Pipe = tuple[FileIO, FileIO]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reading, writing = os.pipe()
    with FileIO(reading) as read_end, FileIO(writing, "w") as write_end:
        yield read_end, write_end


async def test_a_file_takes_everything(tmp_path: Path) -> None:
    with FileIO(tmp_path / "out", "w") as file:
        await Output(file.fileno()).write(b"line\n" * 100_000)
    assert (tmp_path / "out").read_bytes() == b"line\n" * 100_000


@pytest.mark.parametrize("is_blocking", [True, False])
async def test_a_full_pipe_is_waited_for_while_the_loop_goes_on(pipe: Pipe, is_blocking: bool) -> None:
    reading, writing = pipe
    os.set_blocking(writing.fileno(), is_blocking)
    capacity = fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)
    data = os.urandom(3 * capacity)
    task = asyncio.create_task(Output(writing.fileno()).write(data))
    while not task.done() and not _is_full(writing):
        await asyncio.sleep(0)
    assert not task.done()
    collecting = asyncio.create_task(asyncio.to_thread(reading.readall))
    await asyncio.wait_for(task, 10)
    writing.close()
    assert await asyncio.wait_for(collecting, 10) == data
    assert os.get_blocking(reading.fileno())


def _is_full(writing: FileIO) -> bool:
    import select

    poll = select.poll()
    poll.register(writing, select.POLLOUT)
    return not poll.poll(0)


async def test_the_descriptor_is_left_as_it_was(pipe: Pipe) -> None:
    _, writing = pipe
    await Output(writing.fileno()).write(b"x")
    assert os.get_blocking(writing.fileno())


async def test_nobody_reading_is_an_error(pipe: Pipe) -> None:
    reading, writing = pipe
    reading.close()
    with pytest.raises(BrokenPipeError):
        await Output(writing.fileno()).write(b"x")


async def test_nobody_reading_any_more_is_an_error_while_waiting_for_room(pipe: Pipe) -> None:
    reading, writing = pipe
    task = asyncio.create_task(Output(writing.fileno()).write(b"x" * 10_000_000))
    while not _is_full(writing):
        await asyncio.sleep(0)
    reading.close()
    with pytest.raises(BrokenPipeError):
        await asyncio.wait_for(task, 10)


async def test_the_end_of_the_reader_is_told_without_a_write(pipe: Pipe) -> None:
    reading, writing = pipe
    closed = asyncio.Event()
    output = Output(writing.fileno())
    output.when_closed(closed.set)
    await output.write(b"x")
    assert not closed.is_set()
    reading.close()
    await asyncio.wait_for(closed.wait(), 10)


async def test_a_file_is_never_told_to_be_closed(tmp_path: Path) -> None:
    with FileIO(tmp_path / "out", "w") as file:
        Output(file.fileno()).when_closed(lambda: pytest.fail("closed"))
        await asyncio.sleep(0)


def test_the_same_on_uvloop(tmp_path: Path) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def check() -> None:
        reading, writing = os.pipe()
        with FileIO(reading) as read_end, FileIO(writing, "w") as write_end:
            closed = asyncio.Event()
            output = Output(writing)
            output.when_closed(closed.set)
            task = asyncio.create_task(output.write(b"x" * 10_000_000))
            while not _is_full(write_end):
                await asyncio.sleep(0)
            assert not closed.is_set()
            assert len(read_end.read(65_536) or b"") > 0
            read_end.close()
            await asyncio.wait_for(closed.wait(), 10)
            with pytest.raises(BrokenPipeError):
                await asyncio.wait_for(task, 10)

    uvloop.run(check())
