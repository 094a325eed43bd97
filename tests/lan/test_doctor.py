"""`rvq doctor` on hosts with real faults: what is broken is found, said of the right host, and told apart."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lan.network import Network, Unavailable, check_tools, run

TIMEOUT_S = 120

pytestmark = pytest.mark.xdist_group("doctor")
"""Side by side, one worker has them all: what most of them look at is dear to make."""

DROP_MULTICAST = """
table inet fault {
  chain input {
    type filter hook input priority 0
    iifname "eth0" ip daddr 224.0.0.0/4 meta l4proto udp counter drop
  }
}
"""
DROP_UNICAST = """
table inet fault {
  chain input {
    type filter hook input priority 0; policy drop
    iifname "lo" accept
    ip daddr 239.192.0.0/16 udp dport 7400 accept
  }
}
"""


@contextmanager
def hosts(name: str, *names: str) -> Iterator[Network]:
    try:
        check_tools()
        network = Network(name)
    except Unavailable as reason:
        pytest.skip(str(reason))
    try:
        network.add_hosts(names)
        yield network
    finally:
        network.remove()


def start(network: Network, host: str, *words: str, interface: str = "eth0") -> subprocess.Popen[str]:
    command = [*network.on(host), sys.executable, "-m", "rvq.cli", "doctor", "--interface", interface, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def answering(network: Network, **hosts: Sequence[str]) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """A doctor that only answers on each of these hosts, with these options, from when it says so."""
    doctors: dict[str, subprocess.Popen[str]] = {}
    try:
        for host, words in hosts.items():
            doctors[host] = start(network, host, "--answer", *words)
        for doctor in doctors.values():
            assert doctor.stderr is not None
            assert "answers doctors on eth0" in doctor.stderr.readline()
        yield doctors
    finally:
        for doctor in doctors.values():
            doctor.kill()
            doctor.communicate(timeout=TIMEOUT_S)


def findings(doctor: subprocess.Popen[str]) -> tuple[int, list[dict[str, Any]]]:
    """The exit code, and what it found."""
    out, errors = doctor.communicate(timeout=TIMEOUT_S)
    try:
        told = json.loads(out)
    except ValueError:
        raise AssertionError(f"no findings: {out}{errors}") from None
    assert told["healthy"] is (doctor.returncode == 0)
    return doctor.returncode, told["findings"]


def of(found: list[dict[str, Any]], subject: str, address: str = "") -> list[dict[str, Any]]:
    """The findings about this, of the peer with that address or of the host itself."""
    return [one for one in found if one["subject"] == subject and (f"({address})" if address else "") in _peer(one)]


def _peer(finding: dict[str, Any]) -> str:
    peer = finding["peer"] or ""
    return peer if "(" in peer else f"({peer})"


def one(found: list[dict[str, Any]], subject: str, address: str = "") -> dict[str, Any]:
    (finding,) = of(found, subject, address) or [None]
    assert finding is not None, f"nothing about {subject} of {address}: {found}"
    return finding


def verdict(found: list[dict[str, Any]], subject: str, address: str = "") -> str:
    return str(one(found, subject, address)["verdict"])


# --- one that is well, among five that each have a fault --------------------------------------------------------------

WELL, DEAF, SHUT, LOSSY, NARROW, FAR = (f"10.77.0.{number}" for number in range(2, 8))


@pytest.fixture(scope="module")
def ward() -> Iterator[list[dict[str, Any]]]:
    """What one host finds: the next is well, then each has another fault."""
    with hosts("ward", "asks", "well", "deaf", "shut", "lossy", "narrow", "far") as network:
        run(*network.on("deaf"), "nft", "-f", "-", given=DROP_MULTICAST)
        run(*network.on("shut"), "nft", "-f", "-", given=DROP_UNICAST)
        try:
            network.lose(10, ["lossy"])
        except Unavailable as reason:
            pytest.skip(str(reason))
        run(*network.on("narrow"), "ip", "link", "set", "eth0", "mtu", "1400")
        network.narrow("far", 1300)
        others = dict.fromkeys(("well", "deaf", "shut", "lossy", "narrow", "far"), ())
        with answering(network, **others) as doctors:
            code, found = findings(start(network, "asks", "--peer", DEAF, "--json"))
            assert code == 1
            doctors["well"].send_signal(signal.SIGINT)
            told, _ = doctors["well"].communicate(timeout=TIMEOUT_S)
            assert doctors["well"].returncode == 0
            assert "(10.77.0.1) examines the way here" in told
        yield found


def test_the_host_that_asks_is_well_itself(ward: list[dict[str, Any]]) -> None:
    own = [finding for finding in ward if not finding["peer"]]
    assert {finding["verdict"] for finding in own} == {"ok"}, own


def test_a_peer_that_is_well_has_nothing_but_good_findings(ward: list[dict[str, Any]]) -> None:
    found = [finding for finding in ward if f"({WELL})" in _peer(finding)]
    assert [finding["subject"] for finding in found] == ["multicast", "unicast", "mtu", "loss", "clock"]
    assert {finding["verdict"] for finding in found} == {"ok"}, found
    loss, mtu = one(ward, "loss", WELL)["facts"], one(ward, "mtu", WELL)["facts"]
    assert (loss["sent"], loss["lost_there"], loss["lost_back"], loss["size"]) == (1000, 0, 0, 1472)
    assert (mtu["fits"], mtu["mtu"], mtu["peer_mtu"]) == (1472, 1500, 1500)
    assert abs(one(ward, "clock", WELL)["facts"]["ahead_s"]) < 0.5  # it is the same clock


def test_a_peer_that_multicast_does_not_reach_is_found_by_its_address(ward: list[dict[str, Any]]) -> None:
    multicast = one(ward, "multicast", DEAF)
    assert multicast["verdict"] == "fail" and multicast["facts"]["heard"] == 0
    assert "let the peer's firewall pass it in" in multicast["change"] and "IGMP" in multicast["change"]
    assert verdict(ward, "unicast", DEAF) == "ok"
    assert verdict(ward, "mtu", DEAF) == "ok"
    assert not of(ward, "loss", DEAF)


def test_a_peer_that_lets_no_unicast_in_is_told_apart(ward: list[dict[str, Any]]) -> None:
    unicast = one(ward, "unicast", SHUT)
    assert unicast["verdict"] == "fail" and unicast["facts"]["heard"] == 0
    assert "udp dport 32768-60999 accept" in unicast["change"]
    assert verdict(ward, "multicast", SHUT) == "ok"


def test_loss_is_counted_in_its_direction(ward: list[dict[str, Any]]) -> None:
    loss = one(ward, "loss", LOSSY)
    assert loss["verdict"] == "warn"
    assert 40 < loss["facts"]["lost_there"] < 180 and loss["facts"]["lost_back"] == 0
    assert "1,000 probes" in loss["text"] and "UdpRcvbufErrors" in loss["change"]


def test_two_mtus_are_broken_and_the_smaller_one_is_advised(ward: list[dict[str, Any]]) -> None:
    mtu = one(ward, "mtu", NARROW)
    assert mtu["verdict"] == "fail"
    assert (mtu["facts"]["mtu"], mtu["facts"]["peer_mtu"], mtu["facts"]["fits"]) == (1500, 1400, 1372)
    assert "mtu 1400" in mtu["change"]


def test_a_way_that_is_narrower_than_both_its_ends_is_measured(ward: list[dict[str, Any]]) -> None:
    mtu = one(ward, "mtu", FAR)
    assert mtu["verdict"] == "fail"
    assert (mtu["facts"]["mtu"], mtu["facts"]["peer_mtu"], mtu["facts"]["fits"]) == (1500, 1500, 1272)
    assert "mtu 1300" in mtu["change"]
    assert verdict(ward, "loss", FAR) == "ok", "what fits comes through"


# --- keys, pairs, bridges ---------------------------------------------------------------------------------------------


def test_one_wrong_key_says_so_and_the_same_key_too(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from rvq.keyfile import Keys, create_keys, new_key

    ours, other = new_key(), new_key()
    paths = {"ours": [ours], "other": [other], "next": [other, ours], "both": [ours, other]}
    for name, keys in paths.items():
        create_keys(tmp_path / name, Keys(keys))

    def key(name: str) -> list[str]:
        return ["--key-file", str(tmp_path / name)]

    with hosts("keys", "asks", "same", "wrong", "plain") as network:
        with answering(network, same=key("ours"), wrong=key("other"), plain=()):
            code, found = findings(start(network, "asks", "--peer", "--json", *key("ours")))
        assert code == 1
        assert verdict(found, "key", "10.77.0.2") == "ok"
        assert verdict(found, "mtu", "10.77.0.2") == "ok", "sealed probes are as large as sealed frames"
        assert verdict(found, "loss", "10.77.0.2") == "ok"
        wrong = one(found, "key", "10.77.0.3")
        assert wrong["verdict"] == "fail" and other.name in wrong["text"] and "rvq key ls" in wrong["change"]
        plain = one(found, "key", "10.77.0.4")
        assert plain["verdict"] == "fail" and "not sealed" in plain["text"]
        with answering(network, same=key("next")):
            code, found = findings(start(network, "asks", "--peer", "--json", *key("both")))
        assert code == 0 and verdict(found, "key", "10.77.0.2") == "warn"
        assert "re-keying" in one(found, "key", "10.77.0.2")["change"]


def test_two_that_ask_each_other_both_get_their_findings() -> None:
    with hosts("pair", "a", "b") as network:
        doctors = [start(network, host, "--peer", "--json") for host in ("a", "b")]
        for doctor, other in zip(doctors, ("10.77.0.2", "10.77.0.1"), strict=True):
            code, found = findings(doctor)
            assert code == 0, [finding for finding in found if finding["verdict"] != "ok"]
            assert one(found, "loss", other)["facts"]["echoed"] == 1000


def test_a_bridge_that_snoops_without_a_querier_is_a_warning() -> None:
    with hosts("bridge") as network:
        network.configure("address", "add", "10.77.0.100/24", "dev", "left")
        network.configure("link", "set", "left", "type", "bridge", "mcast_snooping", "1")
        code, found = findings(start(network, "switch", "--json", interface="left"))
        assert code == 0 and verdict(found, "snooping") == "warn"
        assert "type bridge mcast_querier 1" in one(found, "snooping")["change"]
        network.configure("link", "set", "left", "type", "bridge", "mcast_querier", "1")
        code, found = findings(start(network, "switch", "--json", interface="left"))
        assert code == 0 and verdict(found, "snooping") == "ok"
        network.configure("link", "set", "left", "type", "bridge", "mcast_snooping", "0")


def test_a_firewall_that_shuts_this_host_off_is_named_by_its_rule() -> None:
    with hosts("wall", "a") as network:
        run(*network.on("a"), "nft", "-f", "-", given=DROP_MULTICAST)
        code, found = findings(start(network, "a", "--json"))
        wall = one(found, "firewall")
        assert code == 1 and verdict(found, "multicast") == "fail"
        assert wall["facts"]["certain"] and "table inet fault, chain input, rule handle" in wall["text"]
        assert wall["change"].startswith("before it: nft insert rule inet fault input")
        rule = wall["change"].partition("before it: ")[2].split()
        run(*network.on("a"), *rule)  # what it advises helps
        code, found = findings(start(network, "a", "--json"))
        assert code == 0 and verdict(found, "multicast") == "ok" and verdict(found, "firewall") == "ok"


@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv, to be nobody special (util-linux)")
def test_small_buffers_are_a_warning_with_what_to_set() -> None:
    limit = int(Path("/proc/sys/net/core/rmem_max").read_text())
    if limit >= 8 * 1024 * 1024:
        pytest.skip("this machine's limit is large enough for everybody")
    with hosts("small", "a") as network:
        humble = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"]
        command = [*network.on("a"), *humble, sys.executable, "-m", "rvq.cli", "doctor", "--json"]
        doctor = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        code, found = findings(doctor)
    buffer = one(found, "receive buffer")
    assert code == 0 and buffer["verdict"] == "warn"
    assert buffer["facts"] == {"asked": 8_388_608, "got": limit}
    assert "sysctl -w net.core.rmem_max=8388608" in buffer["change"]
