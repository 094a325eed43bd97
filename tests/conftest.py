"""Fixtures that all tests share: a bus of their own on loopback, and a network of their own."""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import rvq.bus

CLONE_NEWNET = 0x40000000

# Below the ports that the kernel hands out, and apart for processes that run side by side.
_ports = itertools.count(20_000 + os.getpid() * 37 % 10_000)


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind(("", port))
        except OSError:
            return False
    return True


@pytest.fixture
def port() -> int:
    """A UDP port that nobody uses, and no other test gets."""
    return next(port for port in _ports if _is_free(port))


@pytest.fixture
def bus(port: int) -> rvq.bus.Bus:
    """A bus that is this test's alone."""
    return rvq.bus.Bus(port=port)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("RVQ_")]:
        monkeypatch.delenv(name)


def ip(*arguments: str) -> None:
    """The `ip` command, in the calling thread's network."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=10)


@pytest.fixture
def in_namespace() -> Callable[[Callable[[], Any]], Any]:
    """Calls a function in a thread that has a new network for itself: only `lo`, and that is down."""
    if os.geteuid() != 0:
        pytest.skip("needs root, for a network namespace")
    if not shutil.which("ip"):
        pytest.skip("needs the ip command (apt-get install iproute2)")

    def call(function: Callable[[], Any]) -> Any:
        def inside() -> Any:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.unshare(CLONE_NEWNET) != 0:
                pytest.skip(f"no network namespaces here: {os.strerror(ctypes.get_errno())}")
            return function()

        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(inside).result(timeout=60)

    return call
