"""How commands run: which one, exit codes, and one line for what goes wrong."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import pytest

import rvq.cli
from rvq.cli import command
from rvq.cli.command import COMMANDS, WrongUse, execute
from rvq.errors import BadLabel, BadMessage, BusError, Closed, MessageTooLarge, NotDelivered


@pytest.fixture
def pretending(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a command of a function."""

    def pretend(run: Any) -> None:
        module = SimpleNamespace(
            add_arguments=lambda parser: parser.add_argument("words", nargs="*"),
            run=run,
        )
        monkeypatch.setattr(command, "import_module", lambda name: module)

    return pretend


def raising(error: BaseException) -> Any:
    def run(args: argparse.Namespace) -> int:
        raise error

    return run


@pytest.mark.parametrize("arguments", [["--version"], ["send", "--version"], ["listen", "--version"]])
def test_the_version_is_that_of_the_package(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        rvq.cli.main(arguments)
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"rvq {version('rvq')}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        rvq.cli.main(["--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        rvq.cli.main([name, "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: rvq {name} ") and "--key-file" in shown


@pytest.mark.parametrize("arguments", [[], ["dance"], ["--port", "7", "send"], ["tops"]])
def test_no_command_or_an_unknown_one_is_wrong_use(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        rvq.cli.main(arguments)
    assert caught.value.code == 2
    assert "rvq: error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WrongUse("no"), 2),
        (BadLabel("no"), 2),
        (BadMessage("no"), 2),
        (MessageTooLarge(5, 4), 2),
        (BusError("no"), 1),
        (NotDelivered(3), 1),
        (Closed("no"), 1),
        (OSError(5, "no"), 1),
    ],
)
def test_an_error_is_one_line_and_says_whose_fault_it_is(
    error: Exception, code: int, pretending: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    pretending(raising(error))
    assert execute("rvq-send", "send", []) == code
    assert capsys.readouterr().err == f"rvq-send: {error}\n"


def test_ctrl_c_is_no_error_to_speak_of(pretending: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pretending(raising(KeyboardInterrupt()))
    assert execute("rvq-send", "send", []) == 1
    assert capsys.readouterr().err == ""


def test_a_bug_is_not_hidden(pretending: Any) -> None:
    pretending(raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        execute("rvq-send", "send", [])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--port", "0"], "port=0 is not a port"),
        (["--port", "many"], "port='many' is not a port"),
        (["--address", "10.0.0.0/16"], "not inside 224.0.0.0/4"),
        (["--key-file", ""], "not a key file's path"),
    ],
)
def test_a_bus_that_cannot_be_is_wrong_use(
    options: list[str], words: str, pretending: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    pretending(lambda args: pytest.fail("ran"))
    assert execute("rvq-send", "send", options) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("rvq-send: ") and words in shown and shown.count("\n") == 1


def test_options_may_stand_anywhere(pretending: Any) -> None:
    seen: list[argparse.Namespace] = []
    pretending(lambda args: seen.append(args) or 0)
    assert execute("rvq-send", "send", ["a", "--port", "7401", "b", "--interface", "lo", "c"]) == 0
    assert (seen[0].words, seen[0].port, seen[0].prog) == (["a", "b", "c"], "7401", "rvq-send")


def test_an_interface_that_does_not_exist_is_wrong_use(pretending: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pretending(lambda args: command.reachable_bus(args) and 0)
    assert execute("rvq-send", "send", ["--interface", "nosuch0"]) == 2
    assert capsys.readouterr().err.startswith("rvq-send: no interface 'nosuch0'")


def test_output_that_nobody_reads_is_no_traceback() -> None:
    producer = subprocess.Popen(
        [sys.executable, "-m", "rvq.cli", "doctor"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert producer.stdout is not None and producer.stderr is not None
    producer.stdout.close()
    with producer:
        assert producer.stderr.read() == b""
    assert producer.returncode == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_descriptors_harm_nobody(closed: str, port: int) -> None:
    script = f"exec {shlex.quote(sys.executable)} -m rvq.cli.send work x --linger 0.1 --port {port} {closed}"
    shown = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=30)
    assert shown.returncode == 1 and shown.stdout == ""
    assert ("undone 1" in shown.stderr) == ("2>&-" not in closed)
