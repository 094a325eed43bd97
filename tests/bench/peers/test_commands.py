"""The commands and idle processes: a wrong line and a dead process are noticed."""

from __future__ import annotations

import pytest

from bench.group.fleet import Trouble
from bench.peers import commands

LINES = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("printed", "wrong"),
    [
        (["a", "b", "c"], 0),
        (["a", "c"], 1),
        (["a", "b", "b", "c"], 1),
        (["a", "b", "b"], 2),
        (["a", "b", "c", "d"], 1),
        ([], 3),
    ],
    ids=["once", "lost", "repeated", "repeated in place of another", "invented", "nothing at all"],
)
def test_each_line_must_be_there_once(printed: list[str], wrong: int) -> None:
    assert commands._wrong(LINES, printed) == wrong


def test_a_process_that_died_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_USES", {"receiver": "raise SystemExit(3)"})
    monkeypatch.setattr(commands.time, "sleep", lambda seconds: None)
    taken = iter([0.0, 0.0])

    def cpu_seconds(pid: int) -> float:
        """Of one that has ended, without reaping it."""
        commands.os.waitid(commands.os.P_PID, pid, commands.os.WEXITED | commands.os.WNOWAIT)
        return next(taken)

    monkeypatch.setattr(commands, "cpu_seconds", cpu_seconds)
    with pytest.raises(Trouble, match="idle receiver ended early, with exit code 3"):
        commands.measure_idle(1.0)
