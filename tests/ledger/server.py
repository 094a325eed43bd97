"""A PostgreSQL server for the tests alone: on loopback, in a folder of its own, as a user that it accepts."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

START_S = 60.0
USER = "postgres"
"""Of the database, and of the system where the tests run as root: PostgreSQL refuses that."""


class Unavailable(Exception):
    """There can be no server here; why not."""


def find_programs() -> Path:
    """The folder with initdb and postgres: Debian keeps it out of the PATH, one for each version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if found:
        return found[-1].parent
    if on_path:
        return Path(on_path).resolve().parent
    raise Unavailable("needs a PostgreSQL server (apt-get install postgresql)")


class Server:
    """Started, killed and started again on the same data."""

    def __init__(self) -> None:
        self._programs = find_programs()
        self._as_user: dict[str, Any] = {}
        self._folder = Path(tempfile.mkdtemp(prefix="rvq-postgres-"))
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port = sock.getsockname()[1]
        try:
            self._be_unprivileged()
            self._run("initdb", "-D", str(self._data), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        except BaseException:
            self.remove()
            raise

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _be_unprivileged(self) -> None:
        if os.geteuid() != 0:
            return
        try:
            user = pwd.getpwnam(USER)
        except KeyError:
            raise Unavailable(f"needs a user {USER}, as whom PostgreSQL runs when the tests run as root") from None
        os.chown(self._folder, user.pw_uid, user.pw_gid)
        self._as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def _run(self, program: str, *words: str) -> None:
        command = [str(self._programs / program), *words]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, timeout=60, **self._as_user)
        assert done.returncode == 0, done.stderr

    def dsn(self, database: str = USER) -> str:
        return f"host=127.0.0.1 port={self.port} user={USER} dbname={database}"

    def start(self) -> None:
        """Returns when it takes connections."""
        import psycopg

        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "on"}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self.port), *words],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._as_user,
            )
        deadline = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.dsn(), connect_timeout=5).close()
            except psycopg.OperationalError:
                assert self._process.poll() is None and time.monotonic() < deadline, self.log
                time.sleep(0.02)
            else:
                return

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def kill(self) -> None:
        """All of its processes end at once, without a word to clients or the disk; the next start recovers."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGQUIT)
            process.wait(60)

    def remove(self) -> None:
        """Nobody needs its data again, so it is not asked to put them in order first."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
