"""`rvq replay` as a real process."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rvq.cli
from tests.cli.processes import Commands
from tests.cli.test_journal import write
from tests.journal.test_messages import frame


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A journal of ten messages of the sender 7."""
    write(tmp_path, frame(1, 10))
    return tmp_path


def test_all_is_sent_again_and_counted(commands: Commands, folder: Path) -> None:
    listener = commands.listen()
    replay = commands.start("__main__", "replay", str(folder))
    assert replay.ended() == 0
    assert replay.words[-1].startswith("sent 10, done 10, undone 0 in ")
    listener.until_printed(10)
    assert sorted(listener.texts) == sorted(f"7/{n}" for n in range(1, 11))


def test_some_of_it_into_one_group_and_to_another_label(commands: Commands, folder: Path) -> None:
    team = commands.start("listen", "copy", "--group", "team", "--count", "2")
    team.until_said(r"index \d+ of \d+")
    others = commands.start("listen", "copy")
    others.until_said(r"index \d+ of \d+")
    replay = commands.start(
        *("__main__", "replay", str(folder), "--label", "work", "--to", "copy", "--group", "team"),
        *("--sender", "7", "--sequence", "4-5", "--rate", "100", "--speed", "1"),
    )
    assert (replay.ended(), team.ended()) == (0, 0)
    assert sorted(team.texts) == ["7/4", "7/5"]
    others.interrupt()
    assert others.ended() == 0 and others.texts == []


def test_with_nobody_there_it_gives_up_and_says_so(commands: Commands, folder: Path) -> None:
    replay = commands.start("__main__", "replay", str(folder), "--linger", "0.2")
    assert replay.ended() == 1
    assert "10 messages not done" in replay.words[-2] and replay.words[-1].startswith("sent 10, done 0, undone 10")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: DIR"),
        (["{}", "--label", "other"], "nothing of 'other' is in .*: there is work"),
        (["{}", "--sequence", "5-4"], "ends before it begins"),
        (["{}", "--sequence", "x"], "'x' is not a whole number"),
        (["{}", "--sender", "xyz"], "'xyz' is not an id"),
        (["{}", "--speed", "0"], "'0' is not above 0"),
        (["{}", "--since", "2026-01-01"], "no time zone"),
        (["{}", "--to", ""], "label is empty"),
    ],
)
def test_wrong_use_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    try:
        code = rvq.cli.main(["replay", *(text.format(folder) for text in arguments)])
    except SystemExit as exit:
        code = exit.code  # type: ignore[assignment]
    assert code == 2
    assert re.search(words, capsys.readouterr().err)


def test_no_journal_is_a_fault_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rvq.cli.main(["replay", str(tmp_path / "none")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "none" in line
