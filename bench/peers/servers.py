"""Servers of the peers. Owns starting them on free ports of loopback, with nothing kept on disk, and ending them."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path
from types import TracebackType

from bench.group.fleet import Trouble
from bench.peers.board import bind_to
from bench.peers.systems.system import find_server

START_S_MAX = 20.0


class Server:
    """One process. Gone when the block is left."""

    def __init__(self, name: str) -> None:
        self.port = free_tcp_port()
        self._folder = tempfile.TemporaryDirectory(prefix="rvq-bench-")
        path = find_server(name)
        if path is None:
            raise Trouble(f"{name} is not installed")
        with (Path(self._folder.name) / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [path, *_arguments(name, self.port, Path(self._folder.name))],
                cwd=self._folder.name,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=partial(bind_to, os.getpid()),
            )
        self.pid = self._process.pid

    def __enter__(self) -> Server:
        until = time.monotonic() + START_S_MAX
        while not _answers(self.port):
            if self._process.poll() is not None or time.monotonic() > until:
                log = (Path(self._folder.name) / "log").read_text(errors="replace")
                self._end()
                raise Trouble(f"a server did not start:\n{log[-1000:]}")
            time.sleep(0.02)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait(10)
        self._folder.cleanup()


def _arguments(name: str, port: int, folder: Path) -> list[str]:
    if name == "redis-server":
        here = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
        return [*here, "--save", "", "--appendonly", "no"]
    config = folder / "nats.conf"
    # It drops a client that is behind by more than max_pending; rvq would slow the sender down instead.
    config.write_text(f"listen: 127.0.0.1:{port}\nmax_pending: 512MB\n")
    return ["-c", str(config)]


def _answers(port: int) -> bool:
    with socket.socket() as sock:
        sock.settimeout(1)
        return sock.connect_ex(("127.0.0.1", port)) == 0


def free_tcp_port(count: int = 1) -> int:
    """The first of so many ports in a row that nobody uses now."""
    for _ in range(100):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            first: int = probe.getsockname()[1]
        if first + count < 65_536 and all(_is_free(port) for port in range(first, first + count)):
            return first
    raise Trouble("no free TCP ports")


def _is_free(port: int) -> bool:
    with socket.socket() as sock:
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
