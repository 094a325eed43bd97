"""Settings of a bus, and the addresses of labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from ipaddress import IPv4Address, IPv4Network, ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvq.bus import Bus
from rvq.errors import BadLabel, BusError
from rvq.names import check_label
from rvq.timings import Timings

labels = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=60)
ranges = st.sampled_from(
    ["239.192.0.0/16", "239.0.0.0/8", "239.255.7.0/24", "232.1.16.0/20", "239.5.0.0", "ff15::/96", "ff12::5:100/120"]
)


def test_by_default_nothing_leaves_the_machine() -> None:
    bus = Bus()
    assert (bus.interface, bus.port, bus.address, bus.ttl) == ("lo", 7400, "239.192.0.0/16", 1)
    assert bus.key is None and bus.peers is None


def test_a_bus_is_a_value() -> None:
    assert Bus(port=7401) == Bus(port=7401) != Bus()
    assert len({Bus(), Bus(), Bus(port=7401)}) == 2


def test_default_timings_are_those_of_the_protocol() -> None:
    assert Bus().timings == Timings()


def test_every_timing_is_passed_on() -> None:
    own = {"heartbeat": 0.1, "expiry": 0.5, "lease": 0.6, "settle": 0.07, "orphan_for": 8.0, "report": 0.01}
    assert Bus(**own).timings == Timings(**own)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"port": 0}, "from 1 to 65535"),
        ({"port": 65536}, "from 1 to 65535"),
        ({"port": "7400"}, "from 1 to 65535"),
        ({"port": True}, "from 1 to 65535"),
        ({"ttl": -1}, "from 0 to 255"),
        ({"ttl": 256}, "from 0 to 255"),
        ({"ttl": 1.0}, "from 0 to 255"),
        ({"interface": ""}, "not an interface"),
        ({"interface": None}, "not an interface"),
        ({"address": "10.0.0.0/16"}, "not inside 224.0.0.0/4"),
        ({"address": "224.0.0.0/16"}, "routing protocols"),
        ({"address": "239.192.0.0/25"}, "/8 to /24"),
        ({"address": "239.0.0.0/7"}, "write 238.0.0.0/7"),
        ({"address": "238.0.0.0/7"}, "/8 to /24"),
        ({"address": "239.192.1.0/16"}, "write 239.192.0.0/16"),
        ({"address": "ff15::", "interface": "127.0.0.1"}, "is an IPv4 address and ff15::/112 is a range of IPv6"),
        ({"address": "239.5.0.0/16", "interface": "fe80::1%eth0"}, "is an IPv6 address .* use a range such as ff15::"),
        ({"interface": "::1", "peers": []}, "peers= is for IPv4 only"),
        ({"address": "239.192.0.0/"}, "not an IPv4 network"),
        ({"address": "multicast"}, "not an IPv4 network"),
        ({"address": ""}, "not an IPv4 network"),
        ({"address": 239}, "not str"),
        ({"heartbeat": -1}, "heartbeat"),
        ({"expiry": 0.3}, "three heartbeats"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_to_do(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BusError, match=words):
        Bus(**settings)


@pytest.mark.parametrize("key", ["", b"secret", b"", bytes(31), bytes(33), 7, True, ["k"]])
def test_what_is_no_key_is_refused_and_never_shown(key: Any) -> None:
    with pytest.raises(BusError, match="key") as error:
        Bus(key=key)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("key", ["bus.key", Path("bus.key"), bytes(range(32))])
def test_a_key_is_a_file_or_32_bytes_and_is_not_shown(key: Any) -> None:
    bus = Bus(key=key)
    assert bus.key == key and bus == Bus(key=key) != Bus() and hash(bus) == hash(Bus(key=key))
    assert "key" not in repr(bus)


def test_a_bus_has_a_name_of_its_own() -> None:
    names = {bus.name for bus in (Bus(), Bus(port=7401), Bus(address="239.193.0.0/16"))}
    assert len(names) == 3 and Bus().name == b"239.192.0.0/16 7400"
    assert Bus(address="239.192.5.5").name == Bus(interface="eth0", key=bytes(32)).name == Bus().name


def test_peers_are_where_to_find_the_others() -> None:
    bus = Bus(peers=["10.0.0.1", "queue:7500"], port=7410)
    assert bus.seeds == (("10.0.0.1", 7410, 7425), ("queue", 7500, 7500))
    assert Bus(peers=[]).seeds == Bus().seeds == ()
    assert Bus(peers=[]).peers is not None, "there is no multicast, and others name us"


@pytest.mark.parametrize("peers", ["10.0.0.1", [""], [7], ["a:b"]])
def test_wrong_peers_are_refused(peers: Any) -> None:
    with pytest.raises(BusError, match=r"^peers="):
        Bus(peers=peers)


def test_peers_come_from_the_environment_with_commas_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVQ_PEERS", "10.0.0.1, 10.0.0.2:7500,")
    assert [seed.host for seed in Bus.from_env().seeds] == ["10.0.0.1", "10.0.0.2"]
    assert [seed.host for seed in Bus.from_env(peers="10.0.0.3").seeds] == ["10.0.0.3"]
    monkeypatch.setenv("RVQ_PEERS", "")
    assert Bus.from_env().peers is None


def test_without_an_environment_it_is_the_default_bus() -> None:
    assert Bus.from_env() == Bus()


def test_the_environment_names_a_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVQ_INTERFACE", "eth7")
    monkeypatch.setenv("RVQ_PORT", "7555")
    monkeypatch.setenv("RVQ_ADDRESS", "239.1.0.0/16")
    monkeypatch.setenv("RVQ_KEY_FILE", "bus.key")
    assert Bus.from_env() == Bus(interface="eth7", port=7555, address="239.1.0.0/16", key="bus.key")


def test_an_override_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVQ_PORT", "nonsense")
    assert Bus.from_env(port=7556, ttl=3) == Bus(port=7556, ttl=3)


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RVQ_INTERFACE", "RVQ_PORT", "RVQ_ADDRESS", "RVQ_KEY_FILE", "RVQ_PEERS"):
        monkeypatch.setenv(name, "")
    assert Bus.from_env() == Bus()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("RVQ_PORT", "many", "port='many' is not a port"),
        ("RVQ_PEERS", "10.0.0.1:seven", "has no port"),
    ],
)
def test_what_the_environment_asks_for_in_vain_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BusError, match=words):
        Bus.from_env()


def test_a_plain_address_means_its_sixteen_bit_range() -> None:
    assert Bus(address="239.7.0.0").network == Bus(address="239.7.1.2").network == IPv4Network("239.7.0.0/16")


@pytest.mark.parametrize("interface", ["::1", "fe80::1%eth0", "fd00::2"])
def test_who_names_an_interface_by_its_ipv6_address_has_the_range_of_ipv6(interface: str) -> None:
    bus = Bus(interface=interface)
    assert (bus.address, str(bus.network)) == ("ff15::f271:0/112", "ff15::f271:0/112")
    assert (bus.data_address("work"), bus.control_address("work")) == ("ff15::f271:e8aa", "ff15::f271:e8ab")
    assert bus.directory_address == "ff15::f271:f3d7" and bus.doctors_address == "ff15::f271:61a7"
    assert bus.name == b"ff15::f271:0/112 7400"
    assert replace(bus, port=7401).address == replace(Bus(), interface=interface).address == bus.address


def test_any_other_range_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Bus(interface="::1", address="ff12::/112").address == "ff12::/112"
    assert Bus(interface="eth0", address="ff15::f271:0/112").network.version == 6
    monkeypatch.setenv("RVQ_ADDRESS", "ff18:0:0::7")
    assert str(Bus.from_env().network) == "ff18::/112"


def test_addresses_of_a_label_are_derived_as_documented() -> None:
    pair = int.from_bytes(blake2b(b"work", digest_size=8).digest(), "big") % 2**15
    assert Bus().data_address("work") == str(IPv4Address("239.192.0.0") + 2 * pair)


def test_addresses_of_a_label_never_change_between_releases() -> None:
    assert (Bus().data_address("work"), Bus().control_address("work")) == ("239.192.232.170", "239.192.232.171")


@given(labels, ranges)
def test_addresses_lie_in_the_range_and_their_last_bit_tells_data_from_control(label: str, address: str) -> None:
    bus = Bus(address=address)
    data, control = ip_address(bus.data_address(label)), ip_address(bus.control_address(label))
    assert data in bus.network and control in bus.network
    assert int(data) % 2 == 0 and control == data + 1


def test_the_directory_is_an_odd_address_which_is_no_labels_own() -> None:
    assert Bus().directory_address == "239.192.243.215"
    assert Bus().doctors_address not in (Bus().directory_address, Bus().control_address("doctors"))
    assert int(IPv4Address(Bus().doctors_address)) % 2
    for address in ("239.192.0.0/16", "224.1.0.0/24", "239.0.0.0/8"):
        bus = Bus(address=address)
        assert IPv4Address(bus.directory_address) in bus.network and int(IPv4Address(bus.directory_address)) % 2
    with pytest.raises(BadLabel):
        check_label("\0directory")


def test_labels_spread_over_the_range() -> None:
    assert len({Bus().data_address(f"label-{number}") for number in range(1000)}) > 950


@pytest.mark.parametrize("derive", [Bus.data_address, Bus.control_address])
def test_a_bad_label_has_no_address(derive: Callable[[Bus, str], str]) -> None:
    with pytest.raises(BadLabel):
        derive(Bus(), "")
