"""What a system must have to be measured."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from bench.peers.board import Board, Tally


@dataclass(frozen=True)
class Job:
    """One measurement: so many messages of each sender. With a `rate` one by one by the clock, for the latency."""

    system: str
    senders: int
    receivers: int
    count: int
    size: int
    rate: float = 0.0
    port: int = 0
    """Of the bus or the server; systems without a server use one port per sender from here on."""
    server_pid: int = 0
    spread: int = 0
    """Bodies are so many bytes shorter or longer than `size`, as chance has it, with a mean of `size`."""
    interface: str = "lo"
    namespaces: Sequence[str] = ()
    """The network namespace of each process, the receivers' first; empty if all stay where they are."""
    key: str = ""
    """In hexadecimal, of a sealed bus."""
    peers: str = ""
    """Not empty: there is no multicast, and who this is is asked for the others."""
    offload: bool = True
    """Whether rvq may hand the kernel many datagrams of one length at once (UDP_SEGMENT, UDP_GRO)."""

    @property
    def total(self) -> int:
        return self.count * self.senders


Receive = Callable[[Job, Board, int, Tally], None]
"""Takes messages until the board says stop. The number is the process's row on the board."""

Send = Callable[[Job, Board, int, list[bytes]], None]
"""Sends its messages once the board says go. The number is the sender's."""


@dataclass(frozen=True)
class System:
    """`modules` and `server` are what it needs beside rvq."""

    name: str
    what: str
    receive: Receive
    send: Send
    count: int
    """Messages of 100 bytes that take about half a second."""
    modules: tuple[str, ...] = ()
    server: str = ""
    prepare: Callable[[Job], None] = lambda job: None

    @property
    def missing(self) -> str:
        """What this machine has not, in words; empty if it has everything."""
        for module in self.modules:
            if not _has(module):
                return f"Python's {module} is not installed (pip install '.[bench]')"
        if self.server and find_server(self.server) is None:
            return f"{self.server} is not installed (apt install {self.server})"
        return ""


@cache
def _has(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def find_server(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
