"""`rvq top --web` as a real process, and its options."""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

import rvq.cli
from rvq.cli.command import WrongUse
from rvq.cli.paging import DEFAULT, add_web_arguments, check_web
from rvq.web.place import DEFAULT_PORT, Place
from tests.cli.processes import Commands, Running, until

TOKEN = "a token of many characters"


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_web_arguments(parser)
    return parser.parse_args(arguments)


def get(url: str, **headers: str) -> Any:
    with build_opener(ProxyHandler({})).open(Request(url, headers=headers), timeout=30) as answer:
        return json.loads(answer.read())


def served(commands: Commands, *arguments: str) -> tuple[Running, str]:
    """The command, and where its page is."""
    running = commands.start("__main__", "top", "--web", *arguments)
    return running, running.until_said(r"the page is at http").split("page is at ")[1].split()[0]


def test_the_page_is_served_only_if_asked_for_and_then_on_this_machine() -> None:
    assert parsed().web is None
    assert parsed("--web").web == Place("127.0.0.1", DEFAULT_PORT) == Place.parse(DEFAULT)
    assert parsed("--web", "[::1]:80").web == Place("::1", 80)


def test_what_is_no_place_is_refused_with_what_to_write() -> None:
    with pytest.raises(argparse.ArgumentError, match="'work' is not a place to serve: give a port such as 7480"):
        parsed("--web", "work")


@pytest.mark.parametrize("arguments", [["--admin"], ["--token-file", "f"]])
def test_options_of_the_page_need_the_page(arguments: list[str]) -> None:
    with pytest.raises(WrongUse, match=f"{arguments[0]} is for the page: give --web too"):
        check_web(parsed(*arguments))
    check_web(parsed(*arguments, "--web"))


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--web", "0.0.0.0:0"], 2, r"serving the page on 0\.0\.0\.0, .* needs a token: .*--token-file F"),
        (["--web", "0", "--token-file", "nosuch"], 2, "--token-file nosuch: No such file"),
        (["--web", "192.0.2.1:0"], 2, "needs a token"),
        (["--once", "--web", "0"], 2, "--once"),
        (["--token-file", "f"], 2, "--token-file is for the page: give --web too"),
    ],
)
def test_what_cannot_be_is_one_line(
    capsys: pytest.CaptureFixture[str], port: int, arguments: list[str], code: int, words: str
) -> None:
    assert rvq.cli.main(["top", *arguments, "--port", str(port)]) == code
    said = capsys.readouterr().err
    assert re.search(words, said) and said.count("\n") == 1


def test_a_short_token_is_refused(
    capsys: pytest.CaptureFixture[str], port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RVQ_WEB_TOKEN", "short")
    assert rvq.cli.main(["top", "--web", "0", "--port", str(port)]) == 2
    assert "has 5 characters and can be guessed" in capsys.readouterr().err


def test_an_address_that_cannot_be_had_is_a_fault(
    capsys: pytest.CaptureFixture[str], port: int, monkeypatch: Any
) -> None:
    monkeypatch.setenv("RVQ_WEB_TOKEN", TOKEN)
    assert rvq.cli.main(["top", "--web", "192.0.2.1:0", "--port", str(port)]) == 1
    assert "the page cannot be served at http://192.0.2.1:0/" in capsys.readouterr().err


def test_without_aiohttp_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert rvq.cli.main(["top", "--web", "0", "--port", str(port)]) == 1
    assert "the page needs aiohttp: pip install 'rvq[web]'" in capsys.readouterr().err


def test_importing_the_options_does_not_load_the_server() -> None:
    import subprocess

    ask = "import sys, rvq.cli.paging; print('aiohttp' in sys.modules, 'rvq.web' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout == "False False\n"


def test_a_page_shows_who_is_there_until_it_is_told_to_leave(commands: Commands) -> None:
    running, url = served(commands, "0")
    listener = commands.listen()

    def hosts() -> list[str]:
        return [
            receiver["state"]
            for label in get(f"{url}picture")["labels"]
            for group in label["groups"]
            for receiver in group["receivers"]
        ]

    until(lambda: hosts() == ["in"])
    assert get(f"{url}about")["admin"] is False
    assert listener.process.poll() is None
    running.interrupt(signal.SIGTERM)
    assert running.ended() == 0


def test_elsewhere_the_token_is_asked_for(commands: Commands, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o644)
    running, url = served(commands, "0.0.0.0:0", "--token-file", str(path), "--admin")
    with pytest.raises(HTTPError, match="401"):
        get(f"{url}picture")
    assert get(f"{url}about", Authorization=f"Bearer {TOKEN}")["admin"] is True
    words = "".join(running.words)
    assert "asks for the token" in words and f"chmod 600 {path}" in words and "TLS" in words and TOKEN not in words
    running.interrupt()
    assert running.ended() == 0
