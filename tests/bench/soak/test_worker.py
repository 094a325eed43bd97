"""What is done to a process of a soak from outside, and what of its log the judge is told."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

import pytest

from bench.soak.worker import Log, Outside, Telling
from rvq.core import stream
from rvq.journal.storage import OsFile


def lines(path: Path) -> list[list[str]]:
    """Without their times."""
    return [[event, *words] for event, _, *words in map(str.split, path.read_text().splitlines())]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log")


def test_a_wall_clock_that_is_set_is_set_once_and_written_down(tmp_path: Path, log: Log) -> None:
    outside = Outside(tmp_path / "a0.outside", log)
    assert outside.wall.off_s == 0.0
    for off_s in (1.5, -0.5):
        (tmp_path / "a0.outside").write_text(json.dumps({"wall_s": off_s, "sync_s": 0.25}))
        outside._seen = 0
        outside.look()
        outside.look()
        assert (outside.wall.off_s, outside.sync_s) == (off_s, 0.25)
    assert lines(tmp_path / "log") == [["wall", "1.500000"], ["wall", "-2.000000"]]


def test_a_slow_disk_takes_longer_for_each_sync(tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OsFile, "sync", OsFile.sync)  # put back afterwards
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    outside = Outside(tmp_path / "j0.outside", log)
    outside.slow_down_the_disk()
    file = OsFile(tmp_path / "file", 0o102)
    file.sync()
    outside.sync_s = 0.3
    file.sync()
    file.close()
    assert slept == [0.3]


def test_what_is_lost_and_new_keys_are_written_down_as_rvq_says_them(tmp_path: Path, log: Log) -> None:
    telling = Telling(log)
    for words in (
        "receiver 3f2a… of work (audit): sender 00000000000000a1 is gone: lost 2 messages: 00000000000000a1-3, "
        "00000000000000a1-5",
        "receiver 3f2a… of work (audit): sender 00000000000000a1 is gone: lost or handled by a receiver that is gone "
        "too, 1 message: 00000000000000a1-4",
        "sender 3f2a… of work: seals with key 77 from now on, and opens 77",
        "receiver 3f2a… of work (audit): inherited 2 lanes",
    ):
        telling.emit(logging.LogRecord("rvq", logging.INFO, "", 0, words, None, None))
    assert lines(tmp_path / "log") == [
        ["lost", "00000000000000a1-3,00000000000000a1-5"],
        ["doubtful", "00000000000000a1-4"],
        ["rekeyed"],
    ]
    assert stream.LOST_SHOWN == 10, "of a process that is none of a soak"
