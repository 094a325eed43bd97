"""`rvq dead` from the outside: arguments, and real processes."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from io import FileIO
from typing import Any

import pytest

import rvq.cli
from tests.cli.processes import Commands, Running


def dead(commands: Commands, *arguments: str, **options: Any) -> Running:
    return commands.start("__main__", "dead", *arguments, **options)


def after(commands: Commands, *arguments: str) -> Running:
    """One that has ended."""
    running = dead(commands, *arguments)
    running.ended()
    return running


def bodies(listing: Running) -> list[Any]:
    """Of a listing as JSON."""
    return [json.loads(line)["body"] for line in listing.lines]


def ids(listing: Running) -> dict[Any, str]:
    """By body."""
    return {facts["body"]: facts["id"] for facts in map(json.loads, listing.lines)}


def bury(commands: Commands, *texts: str, **options: Any) -> Running:
    """A listener that has given these up, and lives."""
    refuse = 'read -r body; test -e "$MENDED" || exit 3'
    listener = commands.listen("--exec", refuse, "--attempts", "1", "--concurrency", "4", **options)
    assert commands.send(*texts).ended() == 0
    listener.until(lambda: sum("given up" in text for text in listener.words) == len(texts), "all given up")
    return listener


# --- wrong use ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: ACTION, LABEL\n"),
        (["ls"], "required: LABEL\n"),
        (["look", "work"], "invalid choice: 'look'"),
        (["ls", "work", "--wait", "0"], "--wait: '0' is not above 0"),
        (["redrive", "work", "--all", "--linger", "-1"], "--linger: '-1' is less than nothing"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    arguments: Sequence[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        rvq.cli.main(["dead", *arguments])
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ls", ""], "label is empty"),
        (["ls", ".dead"], "label is empty"),
        (["ls", "w" * 253], "is 258 bytes long"),
        (["ls", "work", "ff-1"], "ls lists all of them: give no ID"),
        (["ls", "work", "--all"], "--all means nothing to ls"),
        (["show", "work"], "say which to show: give an ID (rvq dead ls work lists them)"),
        (["show", "work.dead", "ff-1", "--all"], "--all means nothing to show"),
        (["redrive", "work"], "say which to redrive: give an ID or --all"),
        (["drop", "work"], "say which to drop: give an ID or --all"),
        (["drop", "work", "ff-1", "--all"], "say which to drop: give either, not both"),
        (["drop", "work", "--all", "--json"], "--json means nothing to drop"),
        (["drop", "work", "--all", "--linger", "1"], "--linger means nothing to drop"),
        (["ls", "work", "--interface", "nosuch0"], "no interface 'nosuch0'"),
    ],
)
def test_what_cannot_be_is_one_line_and_wrong_use(
    arguments: Sequence[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rvq.cli.main(["dead", *arguments]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("rvq dead: ") and shown.count("\n") == 1 and words in shown


# --- looking ---


def test_nothing_is_one_sentence_and_fine(commands: Commands) -> None:
    listing = after(commands, "ls", "work")
    assert (listing.ended(), listing.lines) == (0, [])
    assert listing.words == ["no dead letters of work: no process that runs now has given up a message of it"]
    assert after(commands, "drop", "work", "--all").ended() == 0


def test_a_listing_is_a_table_and_changes_nothing(commands: Commands) -> None:
    bury(commands, "one", "two")
    for label in ("work", "work.dead"):
        listing = after(commands, "ls", label)
        assert listing.ended() == 0
        assert listing.texts[0].split() == ["ID", "TRIES", "WHEN", "KEY", "ERROR", "BODY"]
        rows = sorted((row.split(maxsplit=4) for row in listing.texts[1:]), key=lambda row: row[4])
        assert [(row[1], row[3]) for row in rows] == [("1", "-")] * 2
        assert [row[4].split() for row in rows] == [["exit", "code", "3", "one"], ["exit", "code", "3", "two"]]
        assert listing.words == ["2 dead letters of work; rvq dead show work ID tells all"]


def test_listings_at_the_same_time_all_see_everything(commands: Commands) -> None:
    bury(commands, *map(str, range(20)))
    listings = [dead(commands, "ls", "work", "--json") for _ in range(3)]
    for listing in listings:
        assert listing.ended() == 0
        assert sorted(map(int, bodies(listing))) == list(range(20))


def looking(commands: Commands, count: int) -> Running:
    """One that holds so many, and goes on looking."""
    ours, theirs = pty.openpty()
    running = dead(commands, "ls", "work", "--wait", "600", stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    shown = b""
    with FileIO(ours) as terminal:
        while b"looking at work.dead: %d so far" % count not in shown:
            shown += terminal.read(4096)
    return running


def test_a_listing_that_is_killed_leaves_everything_to_the_next(commands: Commands) -> None:
    bury(commands, "one", "two")
    killed = looking(commands, 2)
    killed.interrupt(signal.SIGKILL)
    assert killed.ended() == -signal.SIGKILL
    for _ in range(2):
        assert sorted(bodies(after(commands, "ls", "work", "--json"))) == ["one", "two"]


def test_one_that_waits_says_so_and_sees_everything_after_ctrl_c(commands: Commands) -> None:
    bury(commands, "one")
    first = looking(commands, 1)
    second = dead(commands, "ls", "work", "--json")
    second.until_said("^rvq dead: another rvq dead is at work.dead: waiting for it to end$")
    first.interrupt()
    assert (first.ended(), first.lines) == (1, [])
    assert second.ended() == 0 and bodies(second) == ["one"]


def test_show_tells_all_and_names_what_is_not_there(commands: Commands) -> None:
    listener = commands.listen("--exec", "exit 3", "--attempts", "2")
    assert commands.send("--json", "--key", "user-7", '{"job": 1}').ended() == 0
    listener.until_said("given up after 2 attempts")
    (letter,) = map(json.loads, after(commands, "ls", "work", "--json").lines)
    shown = after(commands, "show", "work", letter["id"])
    assert shown.ended() == 0 and shown.words == []
    text = "\n".join(shown.texts)
    for line in (
        rf"id +{letter['id']}",
        r"label +work \(group default\)",
        r"attempts +2",
        r"sent +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [+-]\d{4}",
        rf"first owner +{letter['first_owner']}",
        r"key +user-7",
        r"headers +none",
        r"error +exit code 3",
        r'body\n    \{"job":1\}',
    ):
        assert re.search(rf"^{line}$", text, re.MULTILINE), line
    missing = after(commands, "show", "work", "--json", "ff-1", letter["id"])
    assert missing.ended() == 1 and json.loads(missing.lines[0]) == letter
    assert missing.words == ["rvq dead: there is no ff-1 among the dead letters of work"]


def test_what_is_no_dead_letter_is_shown_as_such_and_breaks_nothing(commands: Commands) -> None:
    sender = commands.start("send", "work.dead", "--json", '"by hand"', '{"id": 5}', "null", "--linger", "60")
    listing = after(commands, "ls", "work")
    assert listing.ended() == 0 and len(listing.lines) == 4
    assert all("not a dead letter" in row for row in listing.texts[1:])
    assert listing.words[-1].startswith("0 dead letters of work, and 3 other messages")
    redriven = after(commands, "redrive", "work", "--all")
    assert redriven.ended() == 1 and redriven.words[-1] == "redrove 0 dead letters to work, 3 still on work.dead"
    assert sum("is not a dead letter, and is left where it is" in text for text in redriven.words) == 3
    assert after(commands, "drop", "work", "--all").ended() == 0
    assert sender.ended() == 0


def test_another_that_listens_is_told_of(commands: Commands) -> None:
    commands.start("listen", "work.dead").until_said("index 0 of 1")
    listing = after(commands, "ls", "work")
    assert listing.ended() == 0
    assert "another receiver listens to work.dead too, in the same group" in listing.words[-1]


def test_output_that_nobody_reads_is_no_traceback(commands: Commands) -> None:
    bury(commands, "one")
    listing = f"{sys.executable} -m rvq.cli dead ls work --json --port {commands.port}"
    pipeline = commands.shell(f"({listing}; echo code $? >&2) | true")
    assert pipeline.ended() == 0
    assert pipeline.words == ["code 1"]


# --- changing ---


def test_dropped_ones_are_gone_and_the_others_stay(commands: Commands) -> None:
    bury(commands, "one", "two", "three")
    id_of = ids(after(commands, "ls", "work", "--json"))
    dropped = after(commands, "drop", "work", id_of["two"], "ff-1")
    assert dropped.ended() == 1
    assert dropped.words == [
        "rvq dead: there is no ff-1 among the dead letters of work",
        "dropped 1 dead letter of work",
    ]
    assert sorted(bodies(after(commands, "ls", "work", "--json"))) == ["one", "three"]
    everything = after(commands, "drop", "work.dead", "--all")
    assert (everything.ended(), everything.words) == (0, ["dropped 2 dead letters of work"])
    assert bodies(after(commands, "ls", "work", "--json")) == []


def test_redriven_ones_are_done_and_their_letters_gone(commands: Commands, tmp_path: Any) -> None:
    mended = tmp_path / "mended"
    listener = bury(commands, "one", "two", env={**os.environ, "MENDED": str(mended)})
    id_of = ids(after(commands, "ls", "work", "--json"))
    mended.touch()
    watching = commands.listen("--group", "audit", "--meta")
    redriven = after(commands, "redrive", "work", id_of["one"])
    assert (redriven.ended(), redriven.words) == (0, ["redrove 1 dead letter to work"])
    watching.until_printed(1)
    assert [json.loads(line)["body"] for line in watching.lines] == ["one"]
    assert bodies(after(commands, "ls", "work", "--json")) == ["two"]
    assert after(commands, "redrive", "work", "--all").ended() == 0
    assert bodies(after(commands, "ls", "work", "--json")) == []
    listener.interrupt()
    assert listener.ended() == 1
    assert not [text for text in listener.words if "with this process" in text]


def test_one_that_fails_again_is_a_letter_again(commands: Commands) -> None:
    bury(commands, "one")
    (before,) = map(json.loads, after(commands, "ls", "work", "--json").lines)
    assert after(commands, "redrive", "work", before["id"]).ended() == 0
    (now,) = map(json.loads, after(commands, "ls", "work", "--json").lines)
    assert now["body"] == "one" and now["id"] != before["id"]


def test_what_nobody_handles_stays_a_letter(commands: Commands) -> None:
    sender = commands.start("send", "work.dead", "--json", json.dumps(letter_of("one")), "--linger", "60")
    redriven = after(commands, "redrive", "work", "--all", "--linger", "1")
    assert redriven.ended() == 1
    assert redriven.words[0].startswith("rvq dead: waiting: nobody listens to 'work'")
    assert redriven.words[1].startswith("rvq dead: gave up: 1 message not done")
    assert redriven.words[2] == "redrove 0 dead letters to work, 1 still on work.dead"
    assert bodies(after(commands, "ls", "work", "--json")) == ["one"]
    assert after(commands, "drop", "work", "--all").ended() == 0
    assert sender.ended() == 0


def test_ctrl_c_in_a_redrive_says_how_far_it_was(commands: Commands) -> None:
    commands.start("send", "work.dead", "--json", json.dumps(letter_of("one")), "--linger", "60")
    redriving = dead(commands, "redrive", "work", "--all")
    redriving.until_said("waiting: nobody listens")
    redriving.interrupt()
    assert redriving.ended() == 1
    assert redriving.words[-1] == ("rvq dead: interrupted when 0 of 1 were done again; the rest is still on work.dead")


def letter_of(body: Any) -> dict[str, Any]:
    return rvq.DeadLetter("ff-1", "work", "g", body, None, None, "no", "", 5, 1.0, 2.0, "aa", "bb").as_body()


# --- on a terminal ---


def test_a_terminal_gets_lines_that_fit(commands: Commands) -> None:
    bury(commands, "x" * 500)
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "cols", "70"], stdin=theirs, check=True)
    listing = dead(commands, "ls", "work", stdout=theirs)
    os.close(theirs)
    shown = b""
    with FileIO(ours) as terminal:
        try:
            while block := terminal.read(4096):
                shown += block
        except OSError:  # the other end is closed
            pass
    assert listing.ended() == 0
    lines = shown.decode().split("\r\n")
    assert len(lines) == 3 and len(lines[1]) == 70 and lines[1].endswith("x…")
