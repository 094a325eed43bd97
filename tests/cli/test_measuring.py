"""`--metrics` of the commands: the page, and what is wrong with a port."""

from __future__ import annotations

import re
import socket
import urllib.request
from pathlib import Path

import pytest

from tests.cli.processes import Commands, Running


def page_of(running: Running) -> str:
    url = re.search(r"metrics at (http://127\.0\.0\.1:\d+/metrics)", running.until_said("metrics at"))
    assert url is not None
    with urllib.request.urlopen(url[1], timeout=10) as answer:
        return str(answer.read().decode())


def test_a_listener_shows_what_it_counts(commands: Commands) -> None:
    listener = commands.listen("--metrics", "0", "--metrics-parts")
    assert commands.send("one", "two").ended() == 0
    listener.until_printed(2)
    text = page_of(listener)
    assert re.search(r'^rvq_emitted_total{.*role="receiver"} 2.0$', text, re.M)
    assert re.search(r"^rvq_lane_emitted_total{.*} 2.0$", text, re.M)
    listener.interrupt()
    assert listener.ended() == 0


def test_a_sender_and_a_recorder_do_too(commands: Commands, tmp_path: Path) -> None:
    recorder = commands.start("__main__", "record", str(tmp_path / "j"), "--label", "work", "--metrics", "0")
    recorder.until_said(r"index 0 of 1")
    sender = commands.start("send", "work", "one", "--delay", "2", "--metrics", "0")
    assert 'role="sender"' in page_of(sender)
    assert sender.ended() == 0
    assert re.search(r'^rvq_acked_total{.*role="recorder"} 1.0$', page_of(recorder), re.M)
    recorder.interrupt()
    assert recorder.ended() == 0


@pytest.mark.parametrize(("where", "code", "words"), [("x", 2, "is not a port"), ("taken", 1, "choose another port")])
def test_a_wrong_or_taken_port_ends_it_before_it_joins(commands: Commands, where: str, code: int, words: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = str(taken.getsockname()[1]) if where == "taken" else where
        listener = commands.start("listen", "work", "--metrics", number)
        assert listener.ended() == code
    assert len(listener.words) == 1 and words in listener.words[0]
