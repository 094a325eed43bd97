"""Figures in, findings out. Where they come from: tests/aio/checkup; with real faults: tests/lan/test_doctor.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rvq.aio.checkup.examination import Examined
from rvq.aio.checkup.meeting import Peer
from rvq.aio.checkup.post import Way
from rvq.aio.checkup.probing import Clock, Run
from rvq.bus import Bus
from rvq.cli.checkup import judging
from rvq.cli.checkup.finding import Finding, Verdict
from rvq.transport.multicast import Interface

ETH = Interface("eth0", 2, "10.9.0.1", 1500, 0x1043)
BUS = Bus(interface="eth0")
FEW = Run(10, 10, 10, 224, 224, 224, None)
MANY = Run(1000, 1000, 1000, 1472, 1472, 1472, None)
WELL = Examined(
    Peer(8, "host-b", 815, ("10.9.0.2", 40_000), 1500, "", False), FEW, FEW, 1472, 1472, MANY, Clock(0.0004, 0.0002)
)


def judged(examined: Examined, *, key: str = "", own: bool = False) -> dict[str, Finding]:
    return {finding.subject: finding for finding in judging.judge(examined, BUS, ETH, key=key, own=own)}


def test_a_peer_that_is_well_has_good_findings_under_its_name() -> None:
    found = judged(WELL)
    assert list(found) == ["multicast", "unicast", "mtu", "loss", "clock"]
    assert {finding.verdict for finding in found.values()} == {Verdict.OK}
    assert {finding.peer for finding in found.values()} == {"host-b (10.9.0.2)"}
    assert found["clock"].text == "0.4 ms ahead of ours, give or take 0.1 ms"


def test_a_host_alone_has_no_clock_to_compare_and_is_told_how_to_look_further() -> None:
    found = judged(WELL, own=True)
    assert list(found) == ["multicast", "unicast", "mtu", "loss"]
    assert "rvq doctor --peer" in found["multicast"].text and not found["multicast"].peer


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize(("heard", "host"), [(0, "the peer's"), (10, "this host's"), (None, "the peer's")])
def test_a_way_that_is_broken_says_in_which_direction(way: Way, heard: int | None, host: str) -> None:
    finding = judging.way_finding(way, replace(FEW, heard=heard, echoed=0), BUS, ETH)
    assert finding.verdict is Verdict.FAIL and f"let {host} firewall pass it in" in finding.change
    assert ("IGMP" in finding.change) is (way is Way.MULTICAST)
    rule = "ip daddr 239.192.0.0/16 udp dport 7400 accept" if way is Way.MULTICAST else "accept"
    assert rule in finding.change


def test_with_ipv6_headers_are_longer_and_the_rules_are_of_ipv6() -> None:
    own = replace(ETH, address="fd00::1")
    broken = judging.way_finding(Way.MULTICAST, replace(FEW, echoed=0), Bus(interface="fd00::1"), own)
    assert "ip6 daddr ff15::f271:0/112 udp dport 7400" in broken.change and "MLD snooping" in broken.change
    found = judging.mtu_finding(replace(WELL, fits=1452, wanted=1452), own)
    assert found.verdict is Verdict.OK and "1,452 bytes" in found.text
    narrow = judging.mtu_finding(replace(WELL, fits=1232, wanted=1452), own)
    assert narrow.verdict is Verdict.FAIL and narrow.change.endswith("mtu 1280")


def test_of_a_way_that_loses_some_only_the_loss_complains() -> None:
    assert judging.way_finding(Way.MULTICAST, replace(FEW, heard=7, echoed=4), BUS, ETH).verdict is Verdict.OK


@pytest.mark.parametrize(
    ("here", "there", "fits", "verdict", "words"),
    [
        (1500, 1500, 1472, Verdict.OK, "passes uncut"),
        (1500, 1400, 1372, Verdict.FAIL, "dev eth0 mtu 1400"),
        (1500, 9000, 1472, Verdict.FAIL, "dev eth0 mtu 1500, or raise all to 9000"),
        (1500, 1500, 1272, Verdict.FAIL, "dev eth0 mtu 1300"),
        (1500, 1500, 0, Verdict.WARN, "mend what is said above"),
        (300, 300, 272, Verdict.WARN, "ip link set dev eth0 mtu 1500"),
    ],
)
def test_an_mtu_is_one_for_all_and_passes(here: int, there: int, fits: int, verdict: Verdict, words: str) -> None:
    examined = replace(WELL, fits=fits, peer=replace(WELL.peer, mtu=there))
    finding = judging.mtu_finding(examined, replace(ETH, mtu=here))
    assert finding.verdict is verdict and words in str(finding)


@pytest.mark.parametrize(
    ("heard", "echoed", "verdict", "there", "back"),
    [
        (1000, 1000, Verdict.OK, 0, 0),
        (999, 999, Verdict.WARN, 1, 0),
        (1000, 950, Verdict.WARN, 0, 50),
        (799, 799, Verdict.FAIL, 201, 0),
        (900, 600, Verdict.FAIL, 100, 300),
        (None, 990, Verdict.WARN, 10, 0),
        (0, 0, Verdict.FAIL, 1000, 0),
    ],
)
def test_loss_is_counted_and_too_much_is_broken(
    heard: int | None, echoed: int, verdict: Verdict, there: int, back: int
) -> None:
    finding = judging.loss_finding(replace(MANY, heard=heard, echoed=echoed))
    assert finding.verdict is verdict
    assert (finding.facts["lost_there"], finding.facts["lost_back"]) == (there, back)
    assert f"{there:,} were lost there and {back:,} back" in finding.text


def test_keys_that_differ_and_are_both_live_want_re_keying_to_end() -> None:
    sealed = replace(WELL, peer=replace(WELL.peer, key="12ab"))
    assert judged(sealed, key="12ab")["key"].verdict is Verdict.OK
    other = judged(sealed, key="34cd")["key"]
    assert other.verdict is Verdict.WARN and "12ab is in use there and 34cd here" in other.text


@pytest.mark.parametrize(("ahead", "words"), [(2.5, "2.5 s ahead of ours"), (-7200.0, "7,200.0 s behind ours")])
def test_a_clock_that_is_off_is_a_warning(ahead: float, words: str) -> None:
    finding = judging.clock_finding(replace(WELL, clock=Clock(ahead, 0.001)))
    assert finding.verdict is Verdict.WARN and words in finding.text and "NTP" in finding.change


def test_what_a_slow_exchange_cannot_tell_is_no_warning() -> None:
    assert judging.clock_finding(replace(WELL, clock=Clock(0.7, 0.9))).verdict is Verdict.OK
