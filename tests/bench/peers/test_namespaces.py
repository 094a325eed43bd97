"""Hosts for a measurement: whoever is to be on one is there, or does nothing. No traffic is sent here."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bench.figures import Skipped
from bench.peers import namespaces


@pytest.fixture
def host() -> Any:
    """The name of one."""
    try:
        with namespaces.hosts(["a"]) as (name,):
            yield name
    except Skipped as reason:
        pytest.skip(str(reason))


def in_thread(call: Callable[[], Any]) -> Any:
    """A thread has a network of its own, and takes it along when it ends."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(call).result(timeout=20)


def test_who_enters_a_host_is_there(host: str) -> None:
    def enter() -> os.stat_result:
        namespaces.enter_namespace(host)
        return os.stat("/proc/thread-self/ns/net")

    here = os.stat("/proc/thread-self/ns/net")
    there = in_thread(enter)
    assert os.path.samestat(there, os.stat(namespaces.NAMESPACES / host))
    assert not os.path.samestat(there, here)


def test_who_did_not_get_there_goes_no_further(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Libc:
        def setns(self, descriptor: int, kind: int) -> int:
            return 0

    monkeypatch.setattr(ctypes, "CDLL", lambda name, use_errno: Libc())
    with pytest.raises(RuntimeError, match="not in the network namespace"):
        in_thread(lambda: namespaces.enter_namespace(host))
