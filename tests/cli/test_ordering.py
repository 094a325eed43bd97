"""`rvq drain`, `weight`, `pause` and `resume` from the outside: arguments, and real processes."""

from __future__ import annotations

from functools import partial

import pytest

import rvq.cli
from tests.cli.processes import Commands, Running


def after(commands: Commands, *arguments: str) -> Running:
    """A command that has ended."""
    running = commands.start("__main__", *arguments)
    running.ended()
    return running


def has_printed(count: int, *listeners: Running) -> bool:
    return sum(len(listener.lines) for listener in listeners) == count


def id_of(listener: Running) -> str:
    """The beginning of it, as it prints it."""
    return listener.until_said("listening on work").split(" as ")[1].split("…")[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["drain"], "required: ID"),
        (["drain", "3f2a"], "which label does 3f2a listen to? Give --label"),
        (["drain", "nobody", "--label", "work"], "'nobody' is not the id of a receiver"),
        (["weight", "3f2a"], "required: N"),
        (["weight", "3f2a", "65", "--label", "work"], "'65' is too much"),
        (["pause"], "required: LABEL"),
        (["resume", "work", ""], "group is empty"),
    ],
)
def test_wrong_use_is_said_in_a_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = rvq.cli.main(arguments)
    except SystemExit as exit:
        code = exit.code
    assert code == 2
    assert words in capsys.readouterr().err


def test_a_drained_listener_finishes_and_ends_as_if_it_were_told_to(commands: Commands) -> None:
    listener = commands.listen()
    assert commands.send("one", "two").ended() == 0
    done = after(commands, "drain", id_of(listener), "--label", "work")
    assert done.process.returncode == 0
    assert done.words[-1].startswith(f"rvq drain: leaving: {id_of(listener)}")
    assert done.words[-1].endswith(" of work (group default)")
    assert listener.ended() == 0
    assert listener.lines == [b"one", b"two"]
    assert any("told to leave by" in word for word in listener.words)


def test_a_drained_listener_that_runs_commands_ends_too(commands: Commands) -> None:
    listener = commands.listen("--exec", "cat")
    assert commands.send("one").ended() == 0
    assert after(commands, "drain", id_of(listener), "--label", "work").process.returncode == 0
    assert listener.ended() == 0


def test_a_listener_gets_another_weight(commands: Commands) -> None:
    one, other = commands.listen(), commands.listen()
    one.until_place(2)
    other.until_place(2)
    done = after(commands, "weight", id_of(one), "3", "--label", "work")
    assert (done.process.returncode, done.words[-1][:22]) == (0, "rvq weight: weight 3: ")
    assert any("given weight 3 by" in word for word in one.words)
    # A table may take a moment to be in force: then the shares are 3 to 1.
    shares = []
    for _ in range(50):
        before = len(one.lines), len(other.lines)
        assert commands.send(*map(str, range(40))).ended() == 0
        wanted = 40 * (len(shares) + 1)
        one.until(partial(has_printed, wanted, one, other), "all")
        shares.append((len(one.lines) - before[0], len(other.lines) - before[1]))
        if shares[-1] == (30, 10):
            break
    assert shares[-1] == (30, 10), shares


def test_a_paused_group_prints_nothing_until_it_may(commands: Commands) -> None:
    listener = commands.listen()
    assert after(commands, "pause", "work", "default").process.returncode == 0
    sender = commands.start("send", "work", "one", "two")
    sender.until_said("waiting: group 'default' of 'work' is paused: rvq resume work default")
    assert not listener.lines and sender.process.poll() is None
    assert after(commands, "resume", "work").process.returncode == 0
    assert sender.ended() == 0
    listener.until_printed(2)


def test_an_unknown_id_is_a_fault_in_clear_words(commands: Commands) -> None:
    listener = commands.listen()
    there = id_of(listener)
    other = "ff" if not there.startswith("ff") else "ee"
    done = after(commands, "drain", other, "--label", "work")
    assert done.process.returncode == 1
    assert done.words[-1].startswith(f"rvq drain: no receiver {other} of 'work': there are {there}")
    assert listener.process.poll() is None
