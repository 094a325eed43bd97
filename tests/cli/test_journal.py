"""`rvq journal`: listing, checking, comparing and deleting what was recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rvq.cli
from rvq.journal import Entry, Journal, JournalReader
from tests.journal.samples import HOUR, NOW, PART
from tests.journal.test_messages import frame


def write(folder: Path, *entries: Entry, recorder: int = 1, at: float = NOW, close: bool = True) -> Journal:
    journal = Journal.open(folder, group="journal", recorder=recorder)
    for entry in entries:
        journal.writer("work").add(entry)
    journal.commit(at)
    if close:
        journal.close(at)
    return journal


def run(*arguments: object) -> int:
    try:
        return rvq.cli.main(["journal", *map(str, arguments)])
    except SystemExit as exit:
        assert isinstance(exit.code, int)
        return exit.code


def test_listing_shows_each_hour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, frame(1, 1500))
    open_one = write(tmp_path, frame(1501, 2, heard_at=NOW + HOUR), recorder=2, at=NOW + HOUR, close=False)
    assert run("ls", tmp_path) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["LABEL", "HOUR"]
    assert first.split()[:6] == ["work", "2026-09-21", "14h", "1", "1", "1,500"] and "open" not in first
    assert second.split()[-1] == "open"
    assert run("ls", tmp_path, "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["label"], row["part"], row["messages"], row["open"]) for row in rows] == [
        ("work", PART, 1500, False),
        ("work", "2026092115", 2, True),
    ]
    open_one.abort()


def test_an_empty_journal_lists_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    assert run("ls", tmp_path) == 0 and capsys.readouterr().out == ""


def test_a_good_journal_verifies_and_a_flipped_bit_is_told_with_file_and_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, frame(1, 10))
    assert run("verify", tmp_path) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}: good, 10 messages in 1 segments")
    (path,) = tmp_path.glob("label=work/*/*.rvqj")
    data = bytearray(path.read_bytes())
    data[4200] ^= 1
    path.write_bytes(data)
    assert run("verify", tmp_path) == 1
    captured = capsys.readouterr()
    assert "DAMAGED" in captured.out and f"WRONG: {path} at byte 4,096" in captured.err


def test_two_copies_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write(one, frame(1, 10))
    write(other, frame(1, 4), frame(5, 6))
    assert run("verify", one, other) == 0
    assert "10 messages are in both" in capsys.readouterr().out
    write(other, frame(1, 2, sender=8), recorder=2)
    assert run("verify", one, other) == 1
    captured = capsys.readouterr()
    assert f"only in {other}: 2 messages: work {8:016x}-1…2" in captured.err


def test_old_hours_are_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, frame(1, 1))
    write(tmp_path, frame(2, 1, heard_at=NOW + HOUR), recorder=2, at=NOW + HOUR)
    assert run("expire", tmp_path, "--before", "2026-09-21T15:00:00Z") == 0
    captured = capsys.readouterr()
    assert captured.out == f"{tmp_path}/label=work/part={PART}\n" and captured.err == "deleted 1 hour\n"
    assert JournalReader(tmp_path).parts("work") == ["2026092115"]
    assert run("expire", tmp_path, "--keep", "36500d") == 0
    assert JournalReader(tmp_path).parts("work") == ["2026092115"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ls"], "required: DIR"),
        (["look", "here"], "invalid choice"),
        (["ls", "here", "there"], "COPY means nothing to ls"),
        (["verify", "here", "--json"], "--json means nothing to verify"),
        (["ls", "here", "--keep", "7d"], "--keep means nothing to ls"),
        (["expire", "here"], "say what is old: give --keep or --before"),
        (["expire", "here", "--keep", "7d", "--before", "2026-01-01T00:00:00Z"], "one of them"),
    ],
)
def test_wrong_use_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert run(*arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("action", [["ls"], ["verify"], ["expire", "--keep", "7d"]])
def test_a_folder_that_is_no_journal_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], action: list[str]
) -> None:
    missing = tmp_path / "none"
    assert run(action[0], missing, *action[1:]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(missing) in line
    assert not missing.exists(), "looking makes nothing"
