"""Where messages come from."""

from __future__ import annotations

import os
import pty
from pathlib import Path

import pytest

from rvq.cli.bodies import LineReader
from rvq.cli.command import WrongUse
from rvq.cli.source import Arguments, Lines


async def test_arguments_are_one_run_and_bytes_in_them_stay_bytes() -> None:
    source = Arguments(["a", os.fsdecode(b"\xff"), "b\nc"], LineReader())
    assert [run async for run in source.runs()] == [[(None, ["a", b"\xff", "b\nc"])]]
    assert source.fraction() == 1.0 and not source.is_terminal


def test_a_bad_argument_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(WrongUse):
        Arguments(["{"], LineReader(as_json=True))


async def test_a_file_knows_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\n" * 200_000)
    fd = os.open(path, os.O_RDONLY)
    source = Lines(fd, LineReader())
    assert source.fraction() == 0.0
    runs = source.runs()
    await anext(runs)
    middle = source.fraction()
    assert middle is not None and 0 < middle < 1
    count = 0
    async for [(_, bodies)] in runs:
        count += len(bodies)
    assert source.fraction() == 1.0 and count < 400_000
    os.close(fd)


async def test_a_pipe_does_not() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a\nb")
    os.close(writing)
    source = Lines(reading, LineReader())
    assert source.fraction() is None and not source.is_terminal
    assert [run async for run in source.runs()] == [[(None, ["a"])], [(None, ["b"])]]
    os.close(reading)


def test_somebody_who_types_is_known() -> None:
    ours, theirs = pty.openpty()
    assert Lines(theirs, LineReader()).is_terminal
    os.close(ours)
    os.close(theirs)
