"""`rvq-send` from the outside: arguments, and real processes."""

from __future__ import annotations

import gc
import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from io import FileIO
from pathlib import Path

import pytest

from rvq.cli.send import main
from rvq.limits import MESSAGE_BYTES_MAX
from tests.cli.processes import Commands, Running

SUMMARY = re.compile(r"^sent (\d+), done (\d+), undone (\d+) in \d+\.\d\d s$")


def counts(sender: Running) -> tuple[int, int, int]:
    """Sent, done and undone by its last words."""
    found = SUMMARY.match(sender.words[-1])
    assert found, sender.words
    return int(found[1]), int(found[2]), int(found[3])


# --- wrong use ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: LABEL\n"),
        (["work", "x", "--rate", "0"], "--rate: '0' is not above 0"),
        (["work", "x", "--rate", "-5"], "--rate: '-5' is not above 0"),
        (["work", "x", "--linger", "-1"], "--linger: '-1' is less than nothing"),
        (["work", "x", "--linger", "soon"], "--linger: 'soon' is not a number"),
        (["work", "x", "--key", "a", "--key-field", "b"], "not allowed with"),
        (["work", "x", "--key", ""], "--key: is empty"),
        (["work", "x", "--delay", "-1"], "--delay: '-1' is less than nothing: give seconds, from 0"),
        (["work", "x", "--delay", "soon"], "--delay: 'soon' is not a number"),
        (["work", "x", "--ttl", "0"], "--ttl: '0' is not above 0: give seconds above 0"),
        (["work", "x", "--due", "tomorrow"], "--due: 'tomorrow' is not a time in ISO 8601"),
        (["work", "x", "--due", "2030-01-31T18:00:00"], "--due: '2030-01-31T18:00:00' has no time zone"),
        (["work", "x", "--due", "2030-01-31T18:00:00Z", "--delay", "1"], "not allowed with"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    arguments: Sequence[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["", "x"], "label is empty"),
        (["a\nb", "x"], "label 'a\\nb' has the character"),
        (["w" * 256, "x"], "is 256 bytes long"),
        (["work", "x", "--file", "f"], "TEXT and --file both say what to send"),
        (["work", "x", "--key-field", "user"], "give --json too"),
        (["work", "x", "--due", "2390-01-31T18:00:00Z"], "due is before 1970 or more than 100 years away"),
        (["work", "x", "--delay", "1e12"], "is not a duration: give seconds, 0 or more, up to 100 years"),
        (["work", "x", "--delay", "1", "--urgent"], "--delay gives each message its place, and --urgent another"),
        (["work", "x", "--key", "k", "--urgent"], "--key gives each message its place, and --urgent another"),
        (["work", "--file", "/no/such/file"], "cannot read /no/such/file: No such file or directory"),
        (["work", "--file", "/"], "cannot read /: it is a directory"),
        (["work", "--json", "1", "{"], "TEXT 2 is not JSON"),
        (["work", "--json", "--key-field", "user", "{}"], "TEXT 1 has no field 'user'"),
        (["work", "x", "--port", "99999"], "port=99999 is not a port"),
        (["work", "x", "--interface", "nosuch0"], "no interface 'nosuch0'"),
        (
            ["work", "x", "--key-file", "/no/such.key"],
            "no key file /no/such.key: make one with",
        ),
    ],
)
def test_what_cannot_be_sent_is_one_line_and_wrong_use(
    arguments: Sequence[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("rvq-send: ") and shown.count("\n") == 1 and words in shown


# --- with somebody who listens ---


def test_arguments_are_messages(commands: Commands) -> None:
    listener = commands.listen("--count", "3")
    sender = commands.send("one", "two words", "drei\nvier")
    assert (sender.ended(), counts(sender)) == (0, (3, 3, 0))
    assert listener.ended() == 0
    assert sorted(listener.texts) == ["drei", "one", "two words", "vier"]


def test_lines_are_messages(commands: Commands) -> None:
    listener = commands.listen("--count", "10000")
    sender = commands.send(data=b"".join(b"%d\n" % number for number in range(10_000)))
    assert (sender.ended(), counts(sender), len(sender.words)) == (0, (10_000, 10_000, 0), 1)
    assert listener.ended() == 0
    assert sorted(map(int, listener.lines)) == list(range(10_000))


def test_a_file_is_read_and_bytes_stay_bytes(commands: Commands, tmp_path: Path) -> None:
    lines = [b"text", b"", "zwölf".encode(), b"\xff\xfe", b"no newline at the end"]
    (tmp_path / "lines").write_bytes(b"\n".join(lines))
    listener = commands.listen("--count", "5")
    assert commands.send("--file", str(tmp_path / "lines")).ended() == 0
    assert listener.ended() == 0
    assert sorted(listener.lines) == sorted(lines)


def test_no_input_is_nothing_to_do(commands: Commands) -> None:
    sender = commands.send()
    assert (sender.ended(), counts(sender)) == (0, (0, 0, 0))


def test_json_lines_are_objects_and_keys_come_from_a_field(commands: Commands) -> None:
    listener = commands.listen("--count", "2", "--meta")
    data = b'{"user":"a","n":1}\n{"user":7,"n":2}\n'
    assert commands.send("--json", "--key-field", "user", data=data).ended() == 0
    assert listener.ended() == 0
    seen = sorted(((meta["key"], meta["body"]) for meta in map(json.loads, listener.lines)), key=lambda pair: pair[0])
    assert seen == [("7", {"user": 7, "n": 2}), ("a", {"user": "a", "n": 1})]


def test_one_key_meets_one_receiver_in_order(commands: Commands) -> None:
    listeners = [commands.listen() for _ in range(2)]
    listeners[0].until_place(2)
    assert commands.send("--key", "k", data=b"".join(b"%d\n" % number for number in range(1000))).ended() == 0
    handled = [list(map(int, listener.lines)) for listener in listeners]
    assert sorted(handled, key=len) == [[], list(range(1000))]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"{", "rvq-send: line 4 is not JSON: "),
        (str(2**70).encode(), "rvq-send: line 4: this message cannot be packed"),
        (b'"%s"' % (b"x" * MESSAGE_BYTES_MAX), "rvq-send: line 4: message of 16,777,"),
    ],
    ids=["not JSON", "unpackable", "too large"],
)
def test_a_bad_line_is_named_and_those_before_it_are_done(commands: Commands, bad: bytes, words: str) -> None:
    listener = commands.listen()
    sender = commands.start("send", "work", "--json", stdin=subprocess.PIPE)
    sender.write(b"1\n2\n")
    listener.until_printed(2)
    sender.write(b"3\n" + bad + b"\n5\n")
    sender.end_input()
    assert sender.ended() == 2
    assert sender.words[0].startswith(words)
    assert counts(sender) == (3, 3, 0)
    assert sorted(listener.texts) == ["1", "2", "3"]


def test_a_bad_line_at_the_start_ends_it_at_once_even_if_nobody_listens(commands: Commands) -> None:
    sender = commands.send("--json", data=b"x\n1\n")
    assert sender.ended() == 2
    assert sender.words[0] == "rvq-send: line 1 is not JSON: Expecting value at column 1"
    assert counts(sender) == (0, 0, 0)


def test_a_number_that_no_message_can_hold_is_wrong_use(commands: Commands) -> None:
    commands.listen()
    sender = commands.send("--json", "1", str(2**70))
    assert sender.ended() == 2
    assert sender.words[0].startswith("rvq-send: TEXT 2: this message cannot be packed")
    assert counts(sender) == (1, 1, 0)


def test_lines_of_a_slow_pipe_are_sent_when_they_arrive(commands: Commands) -> None:
    listener = commands.listen()
    sender = commands.start("send", "work", stdin=subprocess.PIPE)
    for count in (1, 2, 3):
        sender.write(b"line\n")
        listener.until_printed(count)
    assert sender.process.poll() is None
    sender.end_input()
    assert (sender.ended(), counts(sender)) == (0, (3, 3, 0))


def test_a_rate_is_kept(commands: Commands) -> None:
    commands.listen()
    began = time.monotonic()
    assert commands.send("--rate", "50", data=b"x\n" * 100).ended() == 0
    assert time.monotonic() - began > 1.8


def test_a_delay_is_waited_for_beyond_the_linger_and_said(commands: Commands) -> None:
    listener = commands.listen("--meta", "--count", "1")
    sender = commands.start("send", "work", "x", "--delay", "3", "--ttl", "60", "--linger", "0.5")
    sender.until_said(r"^rvq-send: waiting: what is left is due later, all of it by .*\d\d:\d\d:\d\d$")
    assert not listener.lines
    assert (sender.ended(), counts(sender), listener.ended()) == (0, (1, 1, 0), 0)
    meta = json.loads(listener.lines[0])
    assert meta["ttl"] == 60 and meta["due_at"] == pytest.approx(meta["sent_at"] + 3, abs=2)
    assert "gave up" not in "\n".join(sender.words)


def test_due_and_urgent_are_sent_along(commands: Commands) -> None:
    listener = commands.listen("--meta", "--count", "2")
    assert commands.send("x", "--due", "2001-09-09T03:46:40+02:00").ended() == 0
    assert commands.send("y", "--urgent").ended() == 0
    assert listener.ended() == 0
    first, second = sorted(map(json.loads, listener.lines), key=lambda meta: meta["body"])
    assert (first["due_at"], first["urgent"], first["ttl"]) == (1_000_000_000, False, None)
    assert (second["due_at"], second["urgent"]) == (None, True)


def test_quiet_says_nothing_when_all_is_well(commands: Commands) -> None:
    commands.listen()
    sender = commands.send("--quiet", "x")
    assert (sender.ended(), sender.words) == (0, [])


def test_it_waits_for_slow_work_for_as_long_as_it_goes_on(commands: Commands) -> None:
    commands.listen("--exec", "sleep 0.3")
    sender = commands.send("--linger", "1", data=b"x\n" * 8)
    assert (sender.ended(), counts(sender)) == (0, (8, 8, 0))


def test_a_million_lines_take_little_memory(commands: Commands) -> None:
    listener = commands.start("listen", "work", stdout=subprocess.DEVNULL)
    listener.until_said(r"index 0 of 1")
    limit = 400 * 2**20
    sender = commands.start(
        "send",
        "work",
        stdin=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
    )
    block = b"a line of some thirty characters\n" * 1000
    for _ in range(1000):
        sender.write(block)
    sender.end_input()
    sender.process.wait(100)
    assert (sender.ended(), counts(sender)) == (0, (1_000_000, 1_000_000, 0))


# --- nobody listens, and Ctrl-C ---


def test_nobody_listening_is_said_once_and_ends_after_the_linger(commands: Commands) -> None:
    began = time.monotonic()
    sender = commands.send("--linger", "1.5", "x", "y")
    assert time.monotonic() - began < 10
    assert (sender.ended(), counts(sender)) == (1, (2, 0, 2))
    assert len([text for text in sender.words if text.startswith("rvq-send: waiting: ")]) == 1
    assert sender.words[-2].startswith("rvq-send: gave up: 2 messages not done")


def test_what_waited_is_sent_when_somebody_comes(commands: Commands) -> None:
    sender = commands.start("send", "work", "x", "y")
    sender.until_said("^rvq-send: waiting: ")
    listener = commands.listen("--count", "2")
    assert (sender.ended(), counts(sender)) == (0, (2, 2, 0))
    assert listener.ended() == 0 and sorted(listener.texts) == ["x", "y"]


def test_ctrl_c_while_nobody_listens_reports_what_is_undone(commands: Commands) -> None:
    sender = commands.start("send", "work", "x", "y")
    sender.until_said("^rvq-send: waiting: ")
    sender.interrupt()
    assert (sender.ended(), counts(sender)) == (1, (2, 0, 2))
    assert "Traceback" not in "\n".join(sender.words)


def test_ctrl_c_in_the_middle_of_the_input_reports_what_is_undone(commands: Commands) -> None:
    listener = commands.listen()
    sender = commands.start("send", "work", stdin=subprocess.PIPE)
    sender.write(b"x\n")
    listener.until_printed(1)
    sender.interrupt()
    assert sender.ended() == 1
    sent, _, undone = counts(sender)
    assert sent == 1 and undone in (0, 1) and len(sender.words) == 1


def test_ctrl_c_while_the_window_is_full_reports_what_is_undone(commands: Commands) -> None:
    sender = commands.start("send", "work", stdin=subprocess.PIPE)

    def feed() -> None:
        try:
            while True:
                sender.write(b"x" * 1000 + b"\n")
        except OSError:
            pass

    feeding = threading.Thread(target=feed, daemon=True)
    feeding.start()
    sender.until_said("^rvq-send: waiting: ")
    sender.interrupt(signal.SIGTERM)
    assert sender.ended() == 1
    sent, done, undone = counts(sender)
    assert done == 0 and sent == undone > 0
    feeding.join(10)


@pytest.mark.parametrize("moment", ["rvq.cli.send.reachable_bus", "rvq.cli.send._source", "rvq.aio.run"])
def test_ctrl_c_while_it_starts_reports_that_nothing_was_sent(
    moment: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(moment, interrupted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a coroutine that nobody ran, when the loop never starts
        assert main(["work", "x"]) == 1
        gc.collect()
    assert re.fullmatch(r"sent 0, done 0, undone 0 in \d+\.\d\d s\n", capsys.readouterr().err)


# --- on a terminal ---


def test_a_terminal_gets_a_bar_that_is_gone_at_the_end(commands: Commands) -> None:
    commands.listen()
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    sender = commands.start("send", "work", "--rate", "100", stdin=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    sender.write(b"x\n" * 60)
    sender.end_input()
    shown = b""
    with FileIO(ours) as terminal:
        try:
            while block := terminal.read(4096):
                shown += block
        except OSError:  # the other end is closed
            pass
    assert sender.ended() == 0
    assert re.search(rb"\r\x1b\[K.*sent \d+  done \d+  \d+/s", shown)
    assert re.search(rb"\r\x1b\[Ksent 60, done 60, undone 0 in \d\.\d\d s\r\n$", shown)


def test_the_module_is_a_command() -> None:
    shown = subprocess.run([sys.executable, "-m", "rvq.cli.send", "--help"], capture_output=True, text=True, timeout=30)
    assert shown.returncode == 0 and shown.stdout.startswith("usage: rvq-send ")
