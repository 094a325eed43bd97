"""Fixtures that all tests share: a bus of their own on loopback, and a network of their own."""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import rvq.bus

CLONE_NEWNET = 0x40000000
TESTS = Path(__file__).parent

# Folders whose tests share what is dear to start (a JVM, a database server), or that want the machine for themselves:
# run side by side, each has one worker for all of its tests.
TOGETHER = ("spark", "ledger", "bench")


# A test must not fail because the machine is busy: hypothesis would have each example done within 200 ms.
settings.register_profile("rvq", deadline=None)
settings.load_profile("rvq")


def pytest_configure() -> None:
    """Tests that run side by side do not hear each other: each worker has a loopback of its own, if it may."""
    if "PYTEST_XDIST_WORKER" in os.environ and os.geteuid() == 0 and shutil.which("ip"):
        with suppress(OSError):
            leave_network()
            ip("link", "set", "lo", "up")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if item.get_closest_marker("cluster"):
            item.add_marker(pytest.mark.xdist_group("cluster"))
        elif folder in TOGETHER:
            item.add_marker(pytest.mark.xdist_group(folder))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Workers hand their reports over as UTF-8, which half a surrogate pair in a log line is not."""
    report = yield
    report.sections = [(name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections]
    return report


def leave_network() -> None:
    """From now on the calling thread, and what it starts, has a new network: only `lo`, and that is down."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


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
            try:
                leave_network()
            except OSError as error:
                pytest.skip(f"no network namespaces here: {error.strerror}")
            return function()

        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(inside).result(timeout=60)

    return call
