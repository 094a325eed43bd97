"""Where the page is served. Owns addresses: what may be written, which are loopback, which Host is meant for us."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from rvq.errors import BadArgument

DEFAULT_PORT: Final = 7480
"""TCP. Beside the bus's 7400, and nobody's by custom."""

_OWN_NAMES: Final = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True)
class Place:
    """An address and a TCP port. Loopback unless told, so that nobody else can see it."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT

    @classmethod
    def parse(cls, text: str) -> Place:
        """`7480`, `127.0.0.1:7480`, `[::1]:7480`, `:7480`. BadArgument for anything else."""
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
        # isdecimal() is true of other scripts' digits too, and int() takes them: both agree.
        if not port.isdecimal() or int(port) > 65535 or (":" in host and "[" not in text):
            raise BadArgument(
                f"--web {text!r} is not a place to serve: give a port such as {DEFAULT_PORT}, or an address and a port"
                f" such as 192.168.1.5:{DEFAULT_PORT}"
            )
        if not colon or not host or host == "localhost":
            return cls(port=int(port))
        try:
            return cls(str(ip_address(host)), int(port))
        except ValueError:
            raise BadArgument(
                f"--web {text!r}: {host} is not an address: give one of this host's, or 0.0.0.0"
            ) from None

    @property
    def is_loopback(self) -> bool:
        """Nobody outside this machine can reach it."""
        return ip_address(self.host).is_loopback

    def at(self, port: int) -> Place:
        """The same, with the port that it got."""
        return Place(self.host, port)

    @property
    def url(self) -> str:
        """Where a browser on this machine finds it."""
        address = ip_address(self.host)
        host = "127.0.0.1" if address.is_unspecified and address.version == 4 else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"

    def is_meant(self, host_header: str) -> bool:
        """Whether a request for this Host may be meant for us.

        A name that a stranger owns may lead to 127.0.0.1, and then his page is of our origin: so on loopback only our
        own names are answered to, with any port, since tunnels have their own. On other addresses the token decides.
        """
        return not self.is_loopback or name_of(host_header) in _OWN_NAMES | {self.host}


def name_of(host_header: str) -> str:
    """`localhost` of `localhost:7480`, `::1` of `[::1]:7480`."""
    if host_header.startswith("["):
        return host_header[1:].partition("]")[0].lower()
    return host_header.partition(":")[0].lower()
