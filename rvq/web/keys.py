"""Who may see the page. Owns the token, the cookie that it is exchanged for, and the mark that each action must carry.

Keeps nothing per visitor: a cookie is a time and a seal on it, made with a secret of this process.
"""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path
from typing import Final

from rvq.errors import BadArgument

TOKEN_CHARACTERS_MIN: Final = 16
"""Shorter ones can be guessed over a network."""

SIGNED_IN_S: Final = 12 * 3600
"""A working day. Then the token is asked for again."""

TOKEN_VARIABLE: Final = "RVQ_WEB_TOKEN"

_HOW: Final = "put one into a file (head -c 24 /dev/urandom | base64 > F) and give --token-file F, or set RVQ_WEB_TOKEN"


class Keys:
    """The token, if there is one, and what is made of it."""

    def __init__(self, token: str | None = None, secret: bytes | None = None) -> None:
        if token is not None and len(token) < TOKEN_CHARACTERS_MIN:
            raise BadArgument(
                f"the page's token has {len(token)} characters and can be guessed: use"
                f" {TOKEN_CHARACTERS_MIN} or more; {_HOW}"
            )
        self._token = token
        self._secret = secrets.token_bytes(32) if secret is None else secret
        self.mark = self._seal("mark")
        """Said to the page only, and asked for with each action: a page of another origin cannot read it."""

    @property
    def required(self) -> bool:
        return self._token is not None

    def is_token(self, given: str) -> bool:
        return self._token is not None and _same(given, self._token)

    def make_cookie(self, now: float) -> str:
        """For one who showed the token."""
        until = str(int(now + SIGNED_IN_S))
        return f"{until}.{self._seal(until)}"

    def is_cookie(self, given: str, now: float) -> bool:
        """Ours, and not too old."""
        until, _, seal = given.partition(".")
        return _same(seal, self._seal(until)) and int(until) > now

    def is_mark(self, given: str) -> bool:
        return _same(given, self.mark)

    def _seal(self, text: str) -> str:
        return hmac.new(self._secret, _bytes(text), "sha256").hexdigest()


def _same(given: str, ours: str) -> bool:
    """In a time that tells nothing of where they differ."""
    return hmac.compare_digest(_bytes(given), _bytes(ours))


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")  # a stranger's text must not raise


def read_token(path: str | None) -> str | None:
    """From the file, or from the environment. None if neither is there; BadArgument if the file is no token."""
    if path is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        with Path(path).open() as file:
            token = file.readline(4096).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise BadArgument(f"--token-file {path}: {why}: {_HOW}") from error
    if not token:
        raise BadArgument(f"--token-file {path}: its first line is empty: {_HOW}")
    return token


def need_token(why: str) -> BadArgument:
    """The refusal to serve without one."""
    return BadArgument(f"{why} needs a token: {_HOW}")
