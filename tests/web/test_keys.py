"""The token, and the cookie that it is exchanged for."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvq.errors import BadArgument
from rvq.web.keys import SIGNED_IN_S, TOKEN_CHARACTERS_MIN, Keys, need_token, read_token

TOKEN = "0123456789abcdef"


def test_only_the_whole_token_is_the_token() -> None:
    keys = Keys(TOKEN)
    assert keys.required and keys.is_token(TOKEN)
    assert not any(map(keys.is_token, ("", TOKEN[:-1], TOKEN + "0", TOKEN.upper(), "\udcff", "ä")))


def test_without_a_token_there_is_none_to_show() -> None:
    assert not Keys().required
    assert not Keys().is_token("")


def test_a_token_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(BadArgument, match="15 characters and can be guessed"):
        Keys("x" * (TOKEN_CHARACTERS_MIN - 1))


def test_a_cookie_holds_for_a_working_day() -> None:
    keys = Keys(TOKEN)
    cookie = keys.make_cookie(1000.0)
    assert keys.is_cookie(cookie, 1000.0) and keys.is_cookie(cookie, 999.0 + SIGNED_IN_S)
    assert not keys.is_cookie(cookie, 1001.0 + SIGNED_IN_S)
    assert TOKEN not in cookie


@pytest.mark.parametrize("cookie", ["", ".", "99999999999.", "99999999999.00", "x.y", "99999999999", "\udcff.\udcff"])
def test_a_made_up_cookie_is_none(cookie: str) -> None:
    assert not Keys(TOKEN).is_cookie(cookie, 0.0)


def test_a_cookie_with_another_time_is_none() -> None:
    keys = Keys(TOKEN)
    until, _, seal = keys.make_cookie(0.0).partition(".")
    assert not keys.is_cookie(f"{int(until) + 1}.{seal}", 0.0)


def test_a_cookie_or_mark_of_another_process_is_none() -> None:
    assert not Keys(TOKEN).is_cookie(Keys(TOKEN).make_cookie(0.0), 0.0)
    assert not Keys().is_mark(Keys().mark)


def test_the_mark_is_no_cookie_and_nothing_else_is_the_mark() -> None:
    keys = Keys(secret=b"secret")
    assert keys.is_mark(keys.mark) and not keys.is_mark("") and not keys.is_mark(keys.mark[:-1])
    assert not keys.is_cookie(f"mark.{keys.mark}x", 0.0)


def test_the_token_is_the_first_line_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\nand a remark\n")
    assert read_token(str(path)) == TOKEN


def test_a_file_wins_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVQ_WEB_TOKEN", "from the environment")
    assert read_token(None) == "from the environment"
    (tmp_path / "token").write_text(TOKEN)
    assert read_token(str(tmp_path / "token")) == TOKEN


def test_without_either_there_is_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_token(None) is None
    monkeypatch.setenv("RVQ_WEB_TOKEN", "")
    assert read_token(None) is None


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe"])
def test_a_file_that_holds_no_token_is_refused_by_name(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    with pytest.raises(BadArgument, match=r"--token-file .*token.*: .*RVQ_WEB_TOKEN"):
        read_token(str(tmp_path / "token"))


def test_the_refusal_says_how_to_make_one() -> None:
    assert "head -c 24 /dev/urandom" in str(need_token("that"))
