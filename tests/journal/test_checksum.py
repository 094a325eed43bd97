"""Whoever computes the checksum, it is that of zlib: a journal can be read where the other one is installed."""

from __future__ import annotations

import sys
import zlib
from importlib import reload
from random import Random

import pytest

from rvq.journal import checksum

DATA = Random(1).randbytes(100_003)


def all_sums() -> list[int]:
    some = (b"", b"x", DATA[:64], DATA, memoryview(DATA)[1:9999], bytearray(DATA[:1000]))
    return [checksum.crc32(data, seed) for data in some for seed in (0, 1, 2**32 - 1)]


def test_it_is_that_of_zlib(monkeypatch: pytest.MonkeyPatch) -> None:
    known = checksum.crc32(DATA)
    assert known == zlib.crc32(DATA)
    installed = all_sums()
    try:
        monkeypatch.setitem(sys.modules, "isal", None)
        monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)
        reload(checksum)
        assert checksum.crc32 is zlib.crc32, "also without isal"
        assert all_sums() == installed
    finally:
        monkeypatch.undo()
        reload(checksum)
