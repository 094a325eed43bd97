"""`rvq-listen` from the outside: arguments, and real processes."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from rvq.cli.listen import main
from tests.cli.processes import Commands, Running, until
from tests.cli.test_journal import write
from tests.journal.test_messages import frame


def numbers(count: int) -> bytes:
    return b"".join(b"%d\n" % number for number in range(count))


# --- wrong use ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: LABEL"),
        (["work", "--weight", "0"], "--weight: '0' is less than 1"),
        (["work", "--weight", "65"], "--weight: '65' is too much: give a whole number from 1 to 64"),
        (["work", "--count", "-1"], "--count: '-1' is less than 1"),
        (["work", "--count", "1.5"], "--count: '1.5' is not a whole number"),
        (["work", "--idle", "0"], "--idle: '0' is not above 0"),
        (["work", "--concurrency", "0"], "--concurrency: '0' is less than 1"),
        (["work", "--attempts", "0"], "--attempts: '0' is less than 1"),
        (["work", "--exec", ""], "--exec: is empty"),
        (["work", "extra"], "unrecognized arguments: extra"),
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
        ([""], "label is empty"),
        (["work", "--group", ""], "group is empty"),
        (["work", "--group", "a\x00"], "group 'a\\x00' has the character"),
        (["work", "--concurrency", "2"], "--concurrency says how commands are run: give --exec too"),
        (["work", "--attempts", "2"], "--attempts says how commands are run: give --exec too"),
        (["work", "--exec", "true", "--meta"], "--meta says what to print"),
        (["work", "--tap", "--exec", "true"], "--exec is for who handles messages, and --tap only sees them"),
        (["work", "--tap", "--group", "g"], "--group is for who handles messages"),
        (["work", "--tap", "--group", "default"], "--group is for who handles messages"),
        (["work", "--tap", "--from-journal", "d"], "--from-journal is for who handles messages"),
        (["work", "--tap", "--weight", "1"], "--weight is for who handles messages"),
        (["work", "--tap", "--concurrency", "2"], "--concurrency says how commands are run"),
        (["work", "--port", "0"], "port=0 is not a port"),
        (["work", "--interface", "nosuch0"], "no interface 'nosuch0'"),
    ],
)
def test_what_cannot_be_listened_for_is_one_line_and_wrong_use(
    arguments: Sequence[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("rvq-listen: ") and shown.count("\n") == 1 and words in shown


def test_a_closed_output_is_wrong_use(commands: Commands) -> None:
    shown = subprocess.run(
        f"exec {shlex.quote(sys.executable)} -m rvq.cli.listen work --port {commands.port} >&-",
        shell=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert shown.returncode == 2
    assert shown.stderr.startswith("rvq-listen: standard output is closed")


# --- printing ---


def test_it_says_who_it_is_again_at_each_change(commands: Commands) -> None:
    first = commands.listen()
    assert re.match(r"^listening on work \(group default\) as [0-9a-f]{4}… index 0 of 1$", first.words[0])
    second = commands.listen()
    first.until_place(2)
    second.interrupt()
    assert second.ended() == 0
    first.until_place(1)


def test_bodies_are_printed_raw_and_objects_as_json(commands: Commands) -> None:
    listener = commands.listen("--count", "4")
    assert commands.send("text", "zwölf").ended() == 0
    assert commands.send("--json", '{"a": [1, null]}', '"quoted"').ended() == 0
    assert listener.ended() == 0
    assert sorted(listener.texts) == sorted(["text", "zwölf", '{"a":[1,null]}', "quoted"])


def test_meta_has_everything(commands: Commands) -> None:
    listener = commands.listen("--meta", "--count", "1", "--group", "g")
    before = time.time()
    assert commands.send("--key", "k", "x").ended() == 0
    assert listener.ended() == 0
    meta = json.loads(listener.lines[0])
    assert meta["id"] == f"{meta['sender']}-1"
    assert before - 1 < meta["sent_at"] < time.time() + 1
    wanted = {
        "key": "k",
        "headers": None,
        "label": "work",
        "group": "g",
        "sequence": 1,
        "attempt": 1,
        "redelivered": False,
        "receiver_index": 0,
        "lane": 0,
        "due_at": None,
        "ttl": None,
        "urgent": False,
        "shard": 848,
        "body": "x",
    }
    assert {name: meta[name] for name in wanted} == wanted


def test_each_group_gets_everything_and_its_members_share_it(commands: Commands) -> None:
    alone = commands.listen("--group", "audit")
    sharing = [commands.listen(), commands.listen()]
    for listener in sharing:
        listener.until_place(2)
    assert commands.send(data=numbers(1000)).ended() == 0
    alone.until_printed(1000)
    assert sorted(map(int, alone.lines)) == list(range(1000))
    together = [int(line) for listener in sharing for line in listener.lines]
    assert sorted(together) == list(range(1000))
    assert all(listener.lines for listener in sharing)


def test_weight_is_a_larger_share(commands: Commands) -> None:
    heavy = commands.listen("--weight", "3")
    light = commands.listen()
    heavy.until_place(2)
    assert commands.send(data=numbers(4000)).ended() == 0
    heavy.until_printed(2500)
    assert len(heavy.lines) + len(light.lines) == 4000
    assert len(heavy.lines) == pytest.approx(3000, abs=50)


def test_count_takes_exactly_so_many_and_leaves_the_rest_to_others(commands: Commands) -> None:
    few = commands.listen("--count", "7")
    rest = commands.listen()
    rest.until_place(2)
    assert commands.send(data=numbers(1000)).ended() == 0
    assert few.ended() == 0 and len(few.lines) == 7
    rest.until_printed(993)
    assert sorted(int(line) for line in [*few.lines, *rest.lines]) == list(range(1000))


def test_count_beyond_one_batch_takes_exactly_so_many(commands: Commands) -> None:
    listener = commands.listen("--count", "12345")
    sender = commands.start("send", "work", "--linger", "1", stdin=subprocess.PIPE)
    sender.write(numbers(20_000))
    sender.end_input()
    assert listener.ended() == 0
    assert sorted(map(int, listener.lines)) == list(range(12_345))
    assert sender.ended() == 1
    assert re.match(r"sent 20000, done 12345, undone 7655 ", sender.words[-1])


def test_idle_leaves_after_quiet_seconds(commands: Commands) -> None:
    sender = commands.start("send", "work", "--rate", "2", stdin=subprocess.PIPE)
    sender.write(numbers(4))
    sender.end_input()
    sender.until_said("waiting: ")  # so that the listener's quiet time cannot be over before it begins to send
    listener = commands.listen("--idle", "1.5")
    assert (sender.ended(), listener.ended()) == (0, 0)
    assert len(listener.lines) == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_and_leaves(commands: Commands, number: int) -> None:
    staying, leaving = commands.listen(), commands.listen()
    staying.until_place(2)
    sender = commands.start("send", "work", "--rate", "2000", stdin=subprocess.PIPE)
    sender.write(numbers(4000))
    sender.end_input()
    leaving.until_printed(200)
    leaving.interrupt(number)
    assert leaving.ended() == 0
    assert sender.ended() == 0
    staying.until(lambda: len(staying.lines) + len(leaving.lines) >= 4000)
    assert sorted(int(line) for line in [*staying.lines, *leaving.lines]) == list(range(4000))
    assert "Traceback" not in "\n".join(leaving.words)


def test_a_closed_pipe_ends_it_without_a_word_and_others_go_on(commands: Commands) -> None:
    listening = f"{shlex.quote(sys.executable)} -m rvq.cli.listen work --port {commands.port}"
    pipeline = commands.shell(f"({listening}; echo code $? >&2) | head -n 1")
    pipeline.until_said("index 0 of 1")
    assert commands.send("first").ended() == 0
    assert pipeline.ended() == 0
    assert pipeline.texts == ["first"]
    assert pipeline.words[-1] == "code 0" and len(pipeline.words) == 2
    other = commands.listen()
    assert commands.send(data=numbers(100)).ended() == 0
    other.until_printed(100)
    assert sorted(map(int, other.lines)) == list(range(100))


def test_a_pipe_that_closes_in_a_flood_ends_it_without_a_traceback(commands: Commands) -> None:
    listening = f"{shlex.quote(sys.executable)} -m rvq.cli.listen work --port {commands.port}"
    pipeline = commands.shell(f"({listening}; echo code $? >&2) | head -n 5")
    pipeline.until_said("index 0 of 1")
    other = commands.listen()
    other.until_place(2)
    assert commands.send(data=numbers(50_000)).ended() == 0
    assert pipeline.ended() == 0
    assert len(pipeline.lines) == 5 and pipeline.words[-1] == "code 0"
    assert "Traceback" not in "\n".join(pipeline.words)


def test_a_slow_reader_is_waited_for_and_the_receiver_stays_a_member(commands: Commands) -> None:
    listening = f"{shlex.quote(sys.executable)} -m rvq.cli.listen work --port {commands.port} --count 50000"
    pipeline = commands.shell(f"{listening} | (sleep 3; cat)")
    pipeline.until_said("index 0 of 1")
    sender = commands.send(data=numbers(50_000))
    assert sender.ended() == 0
    assert pipeline.ended() == 0
    assert sorted(map(int, pipeline.lines)) == list(range(50_000))
    assert len(pipeline.words) == 1, "it never had to say that its place has changed"


# --- tapping ---


def test_a_group_begins_with_what_was_recorded_and_goes_on_with_what_is_sent(
    commands: Commands, tmp_path: Path
) -> None:
    write(tmp_path, frame(1, 10))
    recorder = commands.start("__main__", "record", str(tmp_path), "--label", "work")
    recorder.until_said("recording")
    listeners = [commands.listen("--group", "late", "--from-journal", str(tmp_path)) for _ in range(2)]
    assert commands.send(data=numbers(10)).ended() == 0
    until(lambda: sum(len(listener.lines) for listener in listeners) >= 20)
    for listener in listeners:
        listener.interrupt()
        assert listener.ended() == 0
    heard = sorted(text for listener in listeners for text in listener.texts)
    assert heard == sorted([*(f"7/{n}" for n in range(1, 11)), *(str(n) for n in range(10))])


def test_a_folder_that_is_no_journal_is_a_fault_in_one_line(commands: Commands, tmp_path: Path) -> None:
    listener = commands.start("listen", "work", "--from-journal", str(tmp_path))
    assert listener.ended() == 1
    assert "not a journal, since it has no journal.json" in listener.words[-1] and len(listener.words) == 1


def start_tap(commands: Commands, *arguments: str) -> Running:
    tap = commands.start("listen", "work", "--tap", *arguments)
    assert tap.until_said("tapping") == "tapping work: sees everything, owns nothing"
    return tap


def test_a_tap_prints_everything_in_order_and_takes_nothing_from_the_others(commands: Commands) -> None:
    taps = [start_tap(commands), start_tap(commands)]
    sharing = [commands.listen(), commands.listen()]
    for listener in sharing:
        listener.until_place(2)
    assert commands.send(data=numbers(1000)).ended() == 0
    for tap in taps:
        tap.until_printed(1000)
        assert [int(line) for line in tap.lines] == list(range(1000))
    assert sorted(int(line) for listener in sharing for line in listener.lines) == list(range(1000))
    for tap in taps:
        tap.interrupt()
        assert tap.ended() == 0
    assert [listener.words[-1][-4:] for listener in sharing] == ["of 2", "of 2"]


def test_a_tap_tells_what_it_knows_of_each_message(commands: Commands) -> None:
    tap = start_tap(commands, "--meta", "--count", "1")
    commands.listen("--group", "g")
    assert commands.send("--key", "k", "x").ended() == 0
    assert tap.ended() == 0
    meta = json.loads(tap.lines[0])
    wanted = {"key": "k", "label": "work", "group": None, "receiver_index": None, "lane": None, "body": "x"}
    assert {name: meta[name] for name in wanted} == wanted


def test_a_tap_leaves_after_so_many(commands: Commands) -> None:
    tap = start_tap(commands, "--count", "7")
    listener = commands.listen()
    assert commands.send(data=numbers(100)).ended() == 0
    assert tap.ended() == 0 and [int(line) for line in tap.lines] == list(range(7))
    listener.until_printed(100)


def test_a_tap_leaves_when_it_is_quiet(commands: Commands) -> None:
    sender = commands.start("send", "work", stdin=subprocess.PIPE)
    sender.write(numbers(3))
    sender.end_input()
    sender.until_said("waiting: ")
    tap = start_tap(commands, "--idle", "4")
    commands.listen()
    assert (sender.ended(), tap.ended()) == (0, 0)
    assert [int(line) for line in tap.lines] == [0, 1, 2]


# --- commands ---


def test_a_command_gets_the_body_on_its_input(commands: Commands, tmp_path: Path) -> None:
    script = 'cat > "$RVQ_MESSAGE_ID.$RVQ_MESSAGE_ATTEMPT"'
    listener = commands.listen("--exec", script, "--count", "3", cwd=tmp_path)
    assert commands.send("text", data=None).ended() == 0
    assert commands.send(data=b"\xff\xfe").ended() == 0
    assert commands.send("--json", '{"a": 1}').ended() == 0
    assert listener.ended() == 0
    files = sorted(tmp_path.iterdir())
    assert sorted(path.read_bytes() for path in files) == [b"text", b'{"a":1}', b"\xff\xfe"]
    assert all(re.fullmatch(r"[0-9a-f]{16}-1\.1", path.name) for path in files)


def test_a_command_that_fails_is_tried_again(commands: Commands, tmp_path: Path) -> None:
    script = 'echo "$RVQ_MESSAGE_ATTEMPT" >> attempts; test "$RVQ_MESSAGE_ATTEMPT" -ge 3'
    listener = commands.listen("--exec", script, "--count", "1", cwd=tmp_path)
    assert commands.send("x").ended() == 0
    assert listener.ended() == 0
    assert (tmp_path / "attempts").read_text().split() == ["1", "2", "3"]
    assert "exit code 1 at attempt 1, again at once" in listener.until_said("attempt 1")


def test_after_enough_attempts_a_message_is_given_up_and_that_is_a_fault(commands: Commands, tmp_path: Path) -> None:
    listener = commands.listen("--exec", "cat >> all; exit 3", "--attempts", "2", "--count", "1", cwd=tmp_path)
    sender = commands.send("x")
    assert (sender.ended(), listener.ended()) == (0, 1)
    assert (tmp_path / "all").read_text() == "xx"
    assert re.match(
        r"rvq-listen: \S+: exit code 3, given up after 2 attempts: now on work.dead \(rvq dead ls work\)$",
        listener.words[-2],
    )
    assert re.match(r"rvq-listen: 1 dead letter ends with this process, since nobody took it", listener.words[-1])


def test_a_dead_letter_that_somebody_takes_is_not_left(commands: Commands) -> None:
    taker = commands.start("listen", "work.dead", "--count", "1")
    taker.until_said(r"index 0 of 1")
    listener = commands.listen("--exec", "false", "--attempts", "1")
    assert commands.send("x").ended() == 0
    assert taker.ended() == 0
    letter = json.loads(taker.lines[0])
    assert (letter["body"], letter["error"], letter["attempts"]) == ("x", "exit code 1", 1)
    listener.interrupt()
    assert listener.ended() == 1, "it did not do everything"
    assert not [text for text in listener.words if "ends with this process" in text]


def test_a_letter_that_nobody_took_is_a_fault_also_when_it_leaves_at_once(commands: Commands) -> None:
    listener = commands.listen("--exec", "grep -q bad && exit 1; sleep 60", "--attempts", "1", "--concurrency", "2")
    sender = commands.start("send", "work", "bad", "good", "--linger", "60")
    listener.until_said("given up after 1 attempt")
    listener.interrupt()
    listener.until_said("once more to leave at once")
    listener.interrupt()
    assert listener.ended() == 1
    assert "1 dead letter ends with this process" in listener.words[-1]
    sender.interrupt()
    sender.ended()


def test_a_command_that_kills_its_listener_is_given_up_by_another(commands: Commands, tmp_path: Path) -> None:
    deadly = ("--exec", 'echo "$RVQ_MESSAGE_ATTEMPT" >> tries; kill -9 $PPID', "--attempts", "2")
    first = commands.listen(*deadly, cwd=tmp_path)
    sender = commands.start("send", "work", "x", "--linger", "60")
    assert first.ended() == -signal.SIGKILL
    second = commands.listen(*deadly, cwd=tmp_path)
    assert second.ended() == -signal.SIGKILL
    third = commands.listen(*deadly, "--count", "1", cwd=tmp_path)
    assert (sender.ended(), third.ended()) == (0, 1)
    assert "its receiver ended or was cut off at each of 2 attempts, given up" in third.until_said("given up")
    assert (tmp_path / "tries").read_text().split() == ["1", "2"]


def test_concurrency_runs_so_many_at_once(commands: Commands, tmp_path: Path) -> None:
    # Each waits until all four have begun: with fewer at once this would never end.
    script = 'touch "$RVQ_MESSAGE_ID"; while [ "$(ls | wc -l)" -lt 4 ]; do sleep 0.05; done'
    listener = commands.listen("--exec", script, "--concurrency", "4", "--count", "4", cwd=tmp_path)
    assert commands.send(data=numbers(4)).ended() == 0
    assert listener.ended() == 0


def test_with_count_what_was_not_begun_is_left_to_others(commands: Commands) -> None:
    few = commands.listen("--exec", "cat; echo", "--count", "2")
    sender = commands.start("send", "work", stdin=subprocess.PIPE)
    sender.write(numbers(10))
    sender.end_input()
    assert few.ended() == 0
    rest = commands.listen("--count", "8")
    assert (sender.ended(), rest.ended()) == (0, 0)
    assert len(few.lines) == 2
    assert sorted(int(line) for line in [*few.lines, *rest.lines]) == list(range(10))


def test_a_loss_that_was_told_of_is_a_fault(commands: Commands, tmp_path: Path) -> None:
    listener = commands.listen("--exec", "touch begun; sleep 600", cwd=tmp_path)
    sender = commands.start("send", "work", "x", "--linger", "60")
    until(lambda: (tmp_path / "begun").exists())
    sender.interrupt(signal.SIGKILL)
    assert "is gone: lost 1 message: " in listener.until_said("lost")
    listener.interrupt()
    assert listener.ended() == 1


def test_ctrl_c_lets_the_running_command_finish(commands: Commands, tmp_path: Path) -> None:
    script = "touch begun; until [ -e go ]; do sleep 0.05; done; touch finished"
    listener = commands.listen("--exec", script, cwd=tmp_path)
    sender = commands.start("send", "work", "x")
    until(lambda: (tmp_path / "begun").exists())
    listener.interrupt()
    listener.until_said("once more to leave at once")
    (tmp_path / "go").touch()
    assert (listener.ended(), sender.ended()) == (0, 0)
    assert (tmp_path / "finished").exists()


def test_one_that_is_to_leave_says_what_keeps_it(commands: Commands) -> None:
    listener = commands.listen("--exec", "true")
    sender = commands.start("send", "work", "x", "--delay", "3600")
    sender.until_said("is due later")
    listener.interrupt(signal.SIGTERM)
    why = listener.until_said("still here")
    assert "still here: messages that are ours: 1 waiting for their time or next try (sender " in why
    listener.interrupt()
    assert listener.ended() == 1
    sender.interrupt()
    sender.ended()


def test_a_second_signal_leaves_at_once_and_stops_the_command(commands: Commands, tmp_path: Path) -> None:
    script = 'trap "touch stopped; exit 1" TERM; touch begun; sleep 60 & wait'
    listener = commands.listen("--exec", script, cwd=tmp_path)
    sender = commands.start("send", "work", "x", "--linger", "60")
    until(lambda: (tmp_path / "begun").exists())
    listener.interrupt()
    listener.until_said("once more to leave at once")
    listener.interrupt()
    assert listener.ended() == 1
    assert "Traceback" not in "\n".join(listener.words)
    assert (tmp_path / "stopped").exists()
    assert sender.process.poll() is None, "it was not acknowledged"
    other = commands.listen("--count", "1")
    assert (sender.ended(), other.ended()) == (0, 0)
    assert other.texts == ["x"]
