"""`rvq record` as a real process."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

import rvq.cli
from rvq.journal import JournalReader, verify
from rvq.journal.messages import messages
from tests.cli.processes import Commands, Running


def recording(commands: Commands, folder: Path, *options: str) -> Running:
    """A recorder that is in its table."""
    running = commands.start("__main__", "record", str(folder), "--label", "work", *options)
    running.until_said(r"recording work .* index \d+ of \d+")
    return running


def recorded(folder: Path) -> list[str]:
    return [message.content.body for message in messages(JournalReader(folder), "work")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: DIR"),
        (["here"], "say what to record: --label work"),
        (["here", "--label", ""], "is empty"),
        (
            ["here", "--label", "work", "--sync", "sometimes"],
            "'sometimes' is not a duration: give .* or batch, or never",
        ),
        (["here", "--label", "work", "--keep", "7"], "'7' is not a duration: give a number and a unit"),
        (["here", "--label", "work", "--group", ""], "group is empty"),
    ],
)
def test_wrong_use_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    try:
        code = rvq.cli.main(["record", *arguments])
    except SystemExit as exit:
        code = exit.code  # type: ignore[assignment]
    assert code == 2
    assert re.search(words, capsys.readouterr().err)


def test_what_is_sent_is_recorded_and_a_signal_ends_it_in_good_order(commands: Commands, tmp_path: Path) -> None:
    recorder = recording(commands, tmp_path)
    sender = commands.send("one", "two", "three")
    assert sender.ended() == 0
    recorder.interrupt(signal.SIGTERM)
    assert recorder.ended() == 0
    assert recorder.words[-1] == f"recorded 3 messages into {tmp_path}"
    assert sorted(recorded(tmp_path)) == ["one", "three", "two"]
    assert verify(tmp_path).findings == []


def test_two_that_share_say_so_and_what_one_is_killed_over_the_other_records(
    commands: Commands, tmp_path: Path
) -> None:
    first = recording(commands, tmp_path)
    second = recording(commands, tmp_path)
    first.until_said(r"of 2")
    lines = [f"line {number}" for number in range(20_000)]
    sender = commands.start("send", "work", stdin=-1)
    sender.write("\n".join(lines[:10_000]).encode() + b"\n")
    first.process.kill()
    sender.write("\n".join(lines[10_000:]).encode() + b"\n")
    sender.end_input()
    assert sender.ended() == 0, sender.words
    second.interrupt()
    assert second.ended() == 0
    assert sorted(recorded(tmp_path)) == sorted(lines), "each once, whichever of the two had it"
    third = recording(commands, tmp_path)  # seals what the dead one left
    third.interrupt()
    assert third.ended() == 0
    assert verify(tmp_path).findings == []


def test_a_journal_of_another_group_is_a_fault_in_one_line(commands: Commands, tmp_path: Path) -> None:
    first = recording(commands, tmp_path)
    first.interrupt()
    assert first.ended() == 0
    other = commands.start("__main__", "record", str(tmp_path), "--label", "work", "--group", "other")
    assert other.ended() == 1 and len(other.words) == 1
