"""A LAN made of network namespaces: hosts on one switch, or on two that a cable joins.

Nothing of it touches the machine's own network: the bridges live in a namespace of their own. Cables are
pulled and put back at the switch, so a host sees what it would see: no carrier, and all its settings in place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterable

_TOOLS = "/usr/local/sbin:/usr/sbin:/sbin"

LOSS = """
table inet loss {}
delete table inet loss
table inet loss {
  chain input {
    type filter hook input priority 0
    iifname "eth0" meta l4proto udp CHANCE counter drop
  }
}
"""
"""Of one host, in place of what it had before, in one step."""

MUTE = """
table netdev PORT {}
delete table netdev PORT
table netdev PORT {
  chain input {
    type filter hook ingress device "PORT" priority 0
    ip protocol udp CHANCE counter drop
  }
}
"""
"""At the switch: the host itself must not notice that nobody hears it, as it would from its own firewall."""


def _chance(percent: int) -> str:
    """What holds so often; nftables has no number that is below 100 in 100 of 100 cases."""
    return f"numgen random mod 100 < {percent}" if percent < 100 else ""


NO_MULTICAST = """
table inet cloud {
  chain input { type filter hook input priority 0; ip daddr 224.0.0.0/4 meta l4proto udp counter drop; }
  chain output { type filter hook output priority 0; ip daddr 224.0.0.0/4 meta l4proto udp counter drop; }
}
"""


class Unavailable(Exception):
    """This machine cannot make such a network; says why."""


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:{_TOOLS}"


def run(*words: str, given: str | None = None) -> str:
    env = os.environ | {"PATH": _path()}
    done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=20, env=env, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


PACKAGES = {"ip": "iproute2", "nft": "nftables"}


def check_tools(*tools: str) -> None:
    """These, or all. Raises Unavailable."""
    if os.geteuid() != 0:
        raise Unavailable("needs root, for network namespaces")
    for tool in tools or PACKAGES:
        if not shutil.which(tool, path=_path()):
            raise Unavailable(f"needs the {tool} command (apt-get install {PACKAGES[tool]}, or tools/system-packages)")


class Network:
    """Hosts by name, each with an interface `eth0`, on the switch that they are plugged into."""

    SWITCHES = ("left", "right")

    def __init__(self, name: str) -> None:
        self._prefix = f"rvq-{name}-{os.getpid()}"
        self._switch = f"{self._prefix}-switch"
        self._namespaces: list[str] = []
        self._ports: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._routed = False
        try:
            self._build()
        except RuntimeError as error:
            self.remove()
            raise Unavailable(f"no network namespaces with bridges here: {error}") from error
        except BaseException:
            self.remove()
            raise

    def _build(self) -> None:
        self._add_namespace(self._switch)
        for switch in self.SWITCHES:
            # Without a querier a bridge that snoops forgets who has joined; a plain switch floods.
            self._ip(self._switch, "link", "add", switch, "type", "bridge", "mcast_snooping", "0")
            self._ip(self._switch, "link", "set", switch, "up")
        self._ip(self._switch, "link", "add", "trunk-l", "type", "veth", "peer", "name", "trunk-r")
        for port, switch in (("trunk-l", "left"), ("trunk-r", "right")):
            self._ip(self._switch, "link", "set", port, "master", switch, "up")

    def add_host(self, host: str, switch: str = "left") -> None:
        namespace, port, number = f"{self._prefix}-{host}", f"port{len(self._ports)}", len(self._ports) + 1
        self._add_namespace(namespace)
        self._ip(self._switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        self._ip(self._switch, "link", "set", port, "master", switch, "up")
        net = f"10.{78 if self._routed and switch == 'right' else 77}.0"
        self._ip(namespace, "address", "add", f"{net}.{number}/24", "dev", "eth0")
        self._ip(namespace, "link", "set", "eth0", "up")
        if self._routed:
            self._ip(namespace, "route", "add", "default", "via", f"{net}.254")
        self._ports[host] = port
        self._addresses[host] = f"{net}.{number}"

    def add_hosts(self, hosts: Iterable[str], switch: str = "left") -> None:
        for host in hosts:
            self.add_host(host, switch)

    def on(self, host: str) -> list[str]:
        """What to put before a command so that it runs on that host. It keeps its process id."""
        return [shutil.which("ip", path=_path()) or "ip", "netns", "exec", f"{self._prefix}-{host}"]

    def address(self, host: str) -> str:
        return self._addresses[host]

    def add_router(self) -> None:
        """From now on the switches are two networks, with a router between them, that passes no multicast."""
        self.split()
        self._routed = True
        router = f"{self._prefix}-router"
        self._add_namespace(router)
        for switch, net in (("left", 77), ("right", 78)):
            self._ip(
                self._switch, "link", "add", f"to-{switch}", "type", "veth", "peer", "name", switch, "netns", router
            )
            self._ip(self._switch, "link", "set", f"to-{switch}", "master", switch, "up")
            self._ip(router, "address", "add", f"10.{net}.0.254/24", "dev", switch)
            self._ip(router, "link", "set", switch, "up")
        run(*self.on("router"), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    def drop_multicast(self, hosts: Iterable[str]) -> None:
        """These hosts' networks carry none, as in a cloud. Raises Unavailable."""
        for host in hosts:
            try:
                run(*self.on(host), "nft", "-f", "-", given=NO_MULTICAST)
            except RuntimeError as error:
                raise Unavailable(f"no rules with nftables here: {error}") from error

    def dropped_multicast(self, host: str) -> int:
        """How many datagrams were, on the way in and out."""
        words = run(*self.on(host), "nft", "list", "table", "inet", "cloud").split()
        return sum(int(words[place + 1]) for place, word in enumerate(words) if word == "packets")

    def pull_cable(self, host: str) -> float:
        """When it was out."""
        return self._set_link(self._ports[host], "down")

    def put_back_cable(self, host: str) -> float:
        return self._set_link(self._ports[host], "up")

    def split(self) -> float:
        """The two switches no longer reach each other. When that was so."""
        return self._set_link("trunk-l", "down")

    def heal(self) -> float:
        return self._set_link("trunk-l", "up")

    def _set_link(self, port: str, state: str) -> float:
        before = time.monotonic()
        self._ip(self._switch, "link", "set", port, state)
        return before if state == "up" else time.monotonic()

    def narrow(self, host: str, mtu: int) -> None:
        """What is larger does not pass between that host and the others, though both ends know nothing of it."""
        self._ip(self._switch, "link", "set", self._ports[host], "mtu", str(mtu))

    def configure(self, *words: str) -> None:
        """The `ip` command on the host of the switches, which is called `switch`."""
        self._ip(self._switch, *words)

    def lose(self, percent: int, hosts: Iterable[str]) -> None:
        """Each datagram that reaches one of these hosts is dropped with that probability. Raises Unavailable."""
        for host in hosts:
            self.disturb(host, loss=percent)

    def disturb(self, host: str, *, loss: int = 0, mute: int = 0) -> float:
        """So many percent of the datagrams that reach this host are dropped, and of those that it sends; in place of
        what was so before. 100 is a cable that carries one way only. When it was so. Raises Unavailable."""
        try:
            run(*self.on(host), "nft", "-f", "-", given=LOSS.replace("CHANCE", _chance(loss)))
            rules = MUTE.replace("PORT", self._ports[host]).replace("CHANCE", _chance(mute))
            run(*self.on("switch"), "nft", "-f", "-", given=rules)
        except RuntimeError as error:
            raise Unavailable(f"no random loss with nftables here: {error}") from error
        return time.monotonic()

    def lost(self, host: str) -> int:
        """How many datagrams were dropped there."""
        words = run(*self.on(host), "nft", "list", "table", "inet", "loss").split()
        return int(words[words.index("packets") + 1])

    def remove(self) -> None:
        """Namespaces go, and everything in them."""
        while self._namespaces:
            run("ip", "netns", "delete", self._namespaces.pop())

    def _add_namespace(self, namespace: str) -> None:
        run("ip", "netns", "add", namespace)
        self._namespaces.append(namespace)
        self._ip(namespace, "link", "set", "lo", "up")

    def _ip(self, namespace: str, *words: str) -> None:
        run("ip", "-netns", namespace, *words)
