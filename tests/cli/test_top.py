"""`rvq top`: one true picture beside real commands, and words where there is nothing to see."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from rvq.cli import main
from rvq.cli.command import ALL_DONE, FAULT, WRONG_USE
from tests.cli.processes import PATIENCE_S, Commands

SENT = 500


def top(port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rvq.cli", "top", "--port", str(port), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)


def shown(port: int, *arguments: str) -> dict[str, Any]:
    done = top(port, "--once", "--json", *arguments)
    assert (done.returncode, done.stderr) == (ALL_DONE, ""), done
    picture: dict[str, Any] = json.loads(done.stdout)
    return picture


def test_one_picture_is_complete_and_true(commands: Commands) -> None:
    listeners = [commands.listen(), commands.listen("--weight", "3")]
    other = commands.listen("--group", "other")
    for listener in listeners:
        listener.until_place(2)
    sender = commands.start("send", "work", stdin=subprocess.PIPE)
    sender.write(b"".join(b"%d\n" % n for n in range(SENT)))
    other.until_printed(SENT)
    for listener in listeners:
        listener.until(lambda: sum(len(one.lines) for one in listeners) == SENT)
    picture = shown(commands.port)
    (label,) = picture["labels"]
    groups = {group["group"]: group for group in label["groups"]}
    rows = {row["pid"]: row for group in groups.values() for row in group["receivers"]}
    assert set(rows) == {running.process.pid for running in (*listeners, other)}
    assert {pid: row["acked"] for pid, row in rows.items()} == {
        running.process.pid: len(running.lines) for running in (*listeners, other)
    }
    assert groups["default"]["slots"] == 4 and sorted(rows[listeners[1].process.pid]["index"]) in ([0, 1, 2], [1, 2, 3])
    assert {row["state"] for row in rows.values()} == {"in"} and {row["backlog"] for row in rows.values()} == {0}
    (seen,) = label["senders"]
    assert (seen["pid"], seen["inserted"], seen["acked"], seen["undone"]) == (sender.process.pid, SENT, SENT, 0)
    assert picture["totals"]["acked"] == 2 * SENT and picture["bus"]["port"] == commands.port
    tables = top(commands.port, "--once")
    assert tables.returncode == ALL_DONE
    assert (
        " other  table 1" in tables.stdout and f":{other.process.pid} " in tables.stdout and "RECEIVER" in tables.stdout
    )
    listeners[0].process.kill()
    listeners[1].until_place(1)
    (label,) = shown(commands.port)["labels"]
    assert {row["pid"] for group in label["groups"] for row in group["receivers"]} == {
        running.process.pid for running in (listeners[1], other)
    }
    sender.end_input()
    assert sender.ended() == ALL_DONE


def test_labels_that_are_named_are_shown_and_no_others(commands: Commands) -> None:
    commands.listen()
    commands.start("listen", "other").until_said(r"index \d+ of \d+")
    assert [label["label"] for label in shown(commands.port)["labels"]] == ["other", "work"]
    assert [label["label"] for label in shown(commands.port, "other")["labels"]] == ["other"]


def test_where_nobody_is_it_says_so(port: int) -> None:
    done = top(port, "--once")
    assert (done.returncode, done.stdout) == (FAULT, "")
    assert done.stderr.startswith("rvq top: nobody is on this bus (lo, 239.192.0.0/16 port ")
    done = top(port, "--once", "--json", "nothing")
    assert done.returncode == FAULT and json.loads(done.stdout)["totals"]["receivers"] == 0
    assert "nobody sends or listens to 'nothing'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--json"], "--json is for one picture: give --once too"),
        ([""], ""),
        (["--interface", "nosuch0"], "no interface 'nosuch0'"),
        ([], "standard output is no terminal: give --once for one picture"),
    ],
)
def test_wrong_use_is_said(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["top", *arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == WRONG_USE and words in capsys.readouterr().err


def test_without_rich_it_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], port: int
) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["top", "--port", str(port)]) == WRONG_USE
    assert "pip install 'rvq[top]', or give --once" in capsys.readouterr().err


WITHOUT_RICH = """
import sys
sys.modules["rich"] = None
from rvq.cli import main
sys.exit(main(["top", "--once", *sys.argv[1:]]))
"""


def test_one_picture_needs_no_rich(commands: Commands) -> None:
    commands.listen()
    command = [sys.executable, "-c", WITHOUT_RICH, "--port", str(commands.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == ALL_DONE, done.stderr
