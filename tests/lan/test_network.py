"""The network that the other tests here stand on: it carries multicast, loses what it should, and can be cut."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lan.lan import Lan
from tests.lan.network import run

HEAR = """
import socket, struct, sys
group, index = socket.inet_aton("239.192.1.2"), socket.if_nametoindex("eth0")
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("239.192.1.2", 7400))
sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, struct.pack("=4s4si", group, bytes(4), index))
sock.settimeout(20)
print("listening", flush=True)
heard = 0
while (datagram := sock.recv(2000)) != b"end":
    heard += 1
print(heard)
"""

SPEAK = """
import socket, struct, sys, time
index = socket.if_nametoindex("eth0")
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("=4s4si", bytes(4), bytes(4), index))
for number in range(2000):
    sock.sendto(bytes(1400), ("239.192.1.2", 7400))
    if number % 20 == 0:
        time.sleep(0.001)
for _ in range(50):
    sock.sendto(b"end", ("239.192.1.2", 7400))
"""


CATCH = """
import socket
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("", 7401))
sock.settimeout(20)
print("listening", flush=True)
came = 0
while sock.recv(100) != b"end":
    came += 1
print(came)
"""

THROW = """
import socket, sys
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), (sys.argv[1], 7401))
"""


def passes(lan: Lan, speaker: str, hearer: str, address: str) -> bool:
    """Does a datagram? One that comes on the hearer's own loopback afterwards ends the waiting."""
    with subprocess.Popen(
        [*lan.network.on(hearer), sys.executable, "-c", CATCH], stdout=subprocess.PIPE, text=True
    ) as catching:
        assert catching.stdout is not None
        assert catching.stdout.readline() == "listening\n"
        run(*lan.network.on(speaker), sys.executable, "-c", THROW, address, "away")
        run(*lan.network.on(hearer), sys.executable, "-c", THROW, "127.0.0.1", "end")
        return int(catching.stdout.readline()) == 1


def heard_of_2000(lan: Lan, speaker: str, hearer: str) -> int:
    with subprocess.Popen(
        [*lan.network.on(hearer), sys.executable, "-c", HEAR], stdout=subprocess.PIPE, text=True
    ) as hearing:
        assert hearing.stdout is not None
        assert hearing.stdout.readline() == "listening\n"
        run(*lan.network.on(speaker), sys.executable, "-c", SPEAK)
        return int(hearing.stdout.readline())


def test_multicast_passes_both_switches(lan: Lan) -> None:
    lan.network.add_host("a", "left")
    lan.network.add_host("b", "right")
    assert heard_of_2000(lan, "a", "b") > 1000  # all, unless a busy machine lets the socket's buffer overflow


def test_loss_is_as_random_as_asked_for(lan: Lan) -> None:
    lan.network.add_hosts(["a", "b"])
    lan.lose(5, "b")
    assert heard_of_2000(lan, "a", "b") < 2000
    assert 50 < lan.network.lost("b") < 200


def test_a_host_can_be_deaf_or_not_heard_and_hears_and_is_heard_again(lan: Lan) -> None:
    lan.network.add_hosts(["a", "b"])

    def ways() -> tuple[bool, bool]:
        """From a to b, and from b to a."""
        return passes(lan, "a", "b", "10.77.0.2"), passes(lan, "b", "a", "10.77.0.1")

    assert ways() == (True, True)
    lan.network.disturb("b", loss=100)
    assert ways() == (False, True)
    lan.network.disturb("b", mute=100)
    assert ways() == (True, False)
    lan.network.disturb("b")
    assert ways() == (True, True)


def test_a_pulled_cable_leaves_no_carrier(lan: Lan) -> None:
    lan.network.add_host("a")
    carrier = [*lan.network.on("a"), "cat", "/sys/class/net/eth0/carrier"]
    assert run(*carrier) == "1\n"
    lan.network.pull_cable("a")
    assert run(*carrier) == "0\n"
    lan.network.put_back_cable("a")
    assert run(*carrier) == "1\n"


def test_nothing_is_left_of_a_network(lan: Lan, tmp_path: Path) -> None:
    lan.network.add_hosts(["a", "b"])
    namespace = lan.network.on("a")[-1]
    assert namespace in run("ip", "netns", "list")
    lan.network.remove()
    assert namespace not in run("ip", "netns", "list")
    with pytest.raises(RuntimeError, match="Cannot open network namespace"):
        run(*lan.network.on("a"), "true")
