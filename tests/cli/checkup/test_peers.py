"""What the doctor says of a bus without multicast: who answers, and what to do about those who do not."""

from __future__ import annotations

import pytest

import rvq
import rvq.cli
from rvq.aio.fanout import Found
from rvq.cli.checkup.finding import Finding, Verdict
from rvq.cli.checkup.peers import findings_with_peers, port_finding, seed_finding
from rvq.cli.doctor import examine_all
from rvq.peers import Seed
from rvq.transport.multicast import resolve_interface

FOUND = (Found("10.0.0.1", 7400), Found("10.0.0.1", 7403), Found("10.0.0.2", 7400))


async def examined(bus: rvq.Bus) -> list[Finding]:
    return [finding async for finding in examine_all(bus)]


async def test_it_says_which_peers_answer_and_which_do_not(port: int) -> None:
    bus = rvq.Bus(port=port, peers=["127.0.0.1", f"127.0.0.1:{port + 9}"])
    async with rvq.Receiver("work", bus=bus), rvq.Receiver("play", bus=bus):
        findings = await examined(bus)
    assert [finding.subject for finding in findings] == [
        "interface",
        "key",
        "port",
        "peers",
        "peers",
        "receive buffer",
        "send buffer",
    ]
    answers, silent = findings[3:5]
    assert (answers.verdict, answers.text) == (Verdict.OK, f"127.0.0.1 answers at port {port}, {port + 1}")
    assert (silent.verdict, silent.text) == (Verdict.WARN, f"nobody answers at 127.0.0.1, port {port + 9}")
    assert findings[2].text == f"127.0.0.1:{port + 2} was free for one more"


async def test_without_seeds_it_waits_to_be_found(port: int) -> None:
    bus = rvq.Bus(port=port, peers=[])
    findings = [finding async for finding in findings_with_peers(bus, resolve_interface("lo"))]
    assert "none are named: this host waits until others find it" in [finding.text for finding in findings]


def test_one_that_cannot_be_reached_from_here_is_broken(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert rvq.cli.main(["doctor", "--port", str(port), "--peers", "10.0.0.1"]) == 1
    assert "FAIL  peers" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--peer", "--answer"])
def test_what_examines_multicast_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rvq.cli.main(["doctor", "--peers", "127.0.0.1", option]) == 2
    assert "examine multicast, and this bus has peers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seed", "text"),
    [
        (Seed("10.0.0.1", 7400, 7415), "10.0.0.1 answers at port 7400, 7403; 3 found in all"),
        (Seed("10.0.0.2", 7400, 7400), "10.0.0.2 answers at port 7400; 3 found in all"),
        (Seed("10.0.0.2", 7401, 7415), "nobody answers at 10.0.0.2, port 7401 to 7415"),
        (Seed("10.0.0.3", 7400, 7400), "nobody answers at 10.0.0.3, port 7400"),
    ],
)
def test_a_seed_is_there_or_not(seed: Seed, text: str) -> None:
    assert seed_finding(seed, FOUND).text == text


@pytest.mark.parametrize(("port", "verdict"), [(7415, Verdict.OK), (40_000, Verdict.WARN)])
def test_a_host_with_no_port_left_is_told(port: int, verdict: Verdict) -> None:
    assert port_finding(rvq.Bus(peers=[]), resolve_interface("lo"), port).verdict is verdict
