"""Key files: the keys of a sealed bus on disk, for their owner alone. Owns their format, reading and writing.

    rvq-keys 1
    use   3f2a9c01d2e4b5a6  base64 of 32 bytes
    live  77aa0c44e1b20d93  base64 of 32 bytes

One key is in use; the others are opened with, so that a bus is re-keyed while it runs. What begins with # is a remark.
"""

from __future__ import annotations

import os
import stat
from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path
from secrets import token_bytes, token_hex

from rvq.errors import BusError
from rvq.wire.keys import KEY_BYTES, Key, Keys

__all__ = ["Key", "Keys", "create_keys", "new_key", "read_keys", "replace_keys"]

FILE_BYTES_MAX = 16 * 1024
"""Of a file with the most keys and long remarks: what is longer is another file."""
MODE = 0o600
OTHERS = stat.S_IRWXG | stat.S_IRWXO

_FIRST = "rvq-keys 1"
_REMARK = "# Keys of an rvq bus. Whoever can read this can read and send everything: see `rvq key --help`."


def new_key() -> Key:
    return Key(token_bytes(KEY_BYTES))


def read_keys(path: str | os.PathLike[str]) -> Keys:
    """The keys in a file. BusError if there are none, or others can read it."""
    try:
        # Never waits: it may be a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise BusError(f"key file {path} is not a file: make one with `rvq key new {path}` elsewhere")
            _check_mode(path, found.st_mode)
            text = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise BusError(f"no key file {path}: make one with `rvq key new {path}`, or copy that of the others") from None
    except OSError as error:
        raise BusError(f"key file {path} cannot be read ({error.strerror}): see who owns it (ls -l {path})") from error
    return _parse(path, text)


def _check_mode(path: object, mode: int) -> None:
    if mode & OTHERS:
        raise BusError(
            f"key file {path} is open to others (mode {stat.S_IMODE(mode):04o}), who could read everything: run"
            f" `chmod 600 {path}`, and if anybody may have read it, re-key (`rvq key add {path}`)"
        )


def _parse(path: object, data: bytes) -> Keys:
    advice = "restore it, or copy that of the others"
    try:
        lines = [words for line in data.decode("ascii").splitlines() if (words := line.split("#")[0].split())]
    except UnicodeDecodeError:
        raise BusError(f"{path} is no key file: {advice}") from None
    if len(data) > FILE_BYTES_MAX or not lines or lines[0] != _FIRST.split():
        raise BusError(f"{path} is no key file of this version (its first line is not '{_FIRST}'): {advice}")
    live: list[Key] = []
    in_use: list[Key] = []
    for words in lines[1:]:
        key = _parse_key(words)
        if key is None:  # its words are not repeated: they may be a secret
            raise BusError(f"key file {path} is damaged in a line of {len(words)} words: {advice}")
        live.append(key)
        if words[0] == "use":
            in_use.append(key)
    if len(in_use) != 1:
        raise BusError(f"key file {path} has {len(in_use)} keys in use, and not one: {advice}")
    return Keys(live, in_use[0])


def _parse_key(words: list[str]) -> Key | None:
    if len(words) != 3 or words[0] not in ("use", "live"):
        return None
    try:
        key = Key(b64decode(words[2], validate=True))
    except (ValueError, BusError):
        return None
    return key if key.name == words[1] else None


def create_keys(path: str | os.PathLike[str], keys: Keys) -> None:
    """A new file. BusError if there is one already: whoever has it would be left out."""
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "wb") as file:
            file.write(_text(keys))
            os.fsync(file.fileno())
    except FileExistsError:
        raise BusError(f"{path} is there already: choose another name, or add a key to it (`rvq key add`)") from None
    except OSError as error:
        raise BusError(f"key file {path} cannot be written: {error.strerror}") from error


def replace_keys(path: str | os.PathLike[str], keys: Keys) -> None:
    """Other keys in the same file: who reads it meanwhile has the old or the new ones, and never half of them."""
    # What a link points to is replaced, and not the link.
    place = Path(path).resolve()
    beside = place.with_name(f".{place.name}.{token_hex(4)}")
    create_keys(beside, keys)
    try:
        os.replace(beside, place)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise BusError(f"key file {path} cannot be replaced: {error.strerror}") from error


def _text(keys: Keys) -> bytes:
    lines = [_REMARK, _FIRST, *_lines(keys)]
    return "".join(f"{line}\n" for line in lines).encode()


def _lines(keys: Keys) -> Iterable[str]:
    for key in keys.live.values():
        word = "use " if key == keys.in_use else "live"
        yield f"{word}  {key.name}  {b64encode(key.secret).decode()}"
