"""Hosts for a measurement: network namespaces on one bridge. Owns making and removing them, and moving a process in."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.figures import Skipped

sys.path.append(str(Path(__file__).parents[2]))
from tests.lan.network import Network, Unavailable, check_tools, run

NAMESPACES = Path("/var/run/netns")
_CLONE_NEWNET = 0x40000000


@contextmanager
def hosts(names: Sequence[str], *, whole: bool = True) -> Iterator[list[str]]:
    """The namespace of each host, in which `eth0` has an MTU of 1,500 bytes. Raises Skipped where there can be none.

    Between namespaces a run of datagrams that a process hands over at once may travel as one. Unless `whole`: then
    each is cut off before it leaves its host, as by a network card that cannot do it.
    """
    try:
        check_tools("ip")
        network = Network("hosts")
    except Unavailable as reason:
        raise Skipped(str(reason)) from reason
    try:
        yield _add_hosts(network, names, whole)
    finally:
        network.remove()


def _add_hosts(network: Network, names: Sequence[str], whole: bool) -> list[str]:
    try:
        network.add_hosts(names)
        namespaces = [network.on(name)[-1] for name in names]
        for namespace in namespaces:
            run("ip", "-netns", namespace, "link", "set", "eth0", "mtu", "1500", *_segments(whole))
    except RuntimeError as error:
        raise Skipped(f"no such hosts here: {error}") from error
    return namespaces


def _segments(whole: bool) -> list[str]:
    return [] if whole else ["gso_max_segs", "1"]


def enter_namespace(name: str) -> None:
    """This process is on that host from now on: setns(2), which Python has only since 3.12."""
    descriptor = os.open(NAMESPACES / name, os.O_RDONLY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(descriptor, _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, f"cannot enter the network namespace {name}: {os.strerror(number)}")
        # The machine may have an eth0 of its own: whoever is not where it should be must not send a byte.
        if not os.path.samestat(os.fstat(descriptor), os.stat("/proc/thread-self/ns/net")):
            raise RuntimeError(f"not in the network namespace {name}")
    finally:
        os.close(descriptor)
