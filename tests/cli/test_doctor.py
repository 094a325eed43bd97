"""`rvq doctor` as a command: what it prints, in which order, and what it answers."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from typing import Any

import pytest

import rvq.cli
from rvq.bus import Bus
from rvq.cli import doctor
from rvq.cli.checkup.finding import Finding, Verdict
from rvq.cli.doctor import examine_all
from tests.cli.processes import Commands
from tests.conftest import ip

ALONE = ["interface", "route", "key", "receive buffer", "send buffer", "multicast", "unicast", "mtu", "loss", "others"]


async def examined(bus: Bus, **options: Any) -> dict[str, Finding]:
    return {finding.subject: finding async for finding in examine_all(bus, **options)}


def test_loopback_is_healthy(bus: Bus, capsys: pytest.CaptureFixture[str]) -> None:
    assert rvq.cli.main(["doctor", "--port", str(bus.port)]) == 0
    lines = {line[6:21].strip(): line for line in capsys.readouterr().out.splitlines()}
    assert [subject for subject in lines if subject != "firewall"] == ALONE
    assert "10 of 10 arrived there, 10 came back" in lines["multicast"]
    assert "of 1,000 probes of 1,472 bytes 0 were lost there and 0 back" in lines["loss"]


def test_scripts_get_one_document(bus: Bus, capsys: pytest.CaptureFixture[str]) -> None:
    assert rvq.cli.main(["doctor", "--port", str(bus.port), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["healthy"] is True and told["bus"]["port"] == bus.port
    assert [finding["subject"] for finding in told["findings"] if finding["subject"] != "firewall"] == ALONE
    loss = next(finding for finding in told["findings"] if finding["subject"] == "loss")
    assert loss["facts"]["sent"] == loss["facts"]["echoed"] == 1000


def test_an_interface_that_does_not_exist_is_the_only_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert rvq.cli.main(["doctor", "--interface", "nosuch0"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 and lines[0].startswith("FAIL  interface") and "nosuch0" in lines[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "0"], "rvq doctor: port=0 is not a port"),
        (["--peer", "no.such host"], "rvq doctor: --peer 'no.such host' is no host"),
        (["--answer", "--json"], "rvq doctor: --answer only answers"),
        (["--answer", "--interface", "nosuch0"], "rvq doctor: no interface 'nosuch0'"),
    ],
)
def test_what_cannot_be_is_wrong_use(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rvq.cli.main(["doctor", *words]) == 2
    assert capsys.readouterr().err.startswith(said)


async def test_a_taken_port_is_a_failure_with_advice(bus: Bus) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("", bus.port))
        found = await examined(bus)
    assert found["multicast"].verdict is Verdict.FAIL
    assert f"port {bus.port} is taken" in found["multicast"].text


def test_an_interface_that_is_down_or_has_no_cable_is_said(in_namespace: Callable[[Callable[[], Any]], Any]) -> None:
    def inside() -> list[dict[str, Finding]]:
        import asyncio

        found = [asyncio.run(examined(Bus()))]
        ip("link", "add", "here", "type", "veth", "peer", "name", "there")
        ip("address", "add", "10.9.0.1/24", "dev", "here")
        ip("link", "set", "dev", "here", "up")
        return [*found, {f.subject: f for f in doctor._at_rest(Bus(interface="here"), resolve("here"))}]

    down, pulled = in_namespace(inside)
    assert {subject: finding.verdict for subject, finding in down.items()} == {"interface": Verdict.FAIL}
    assert pulled["interface"].verdict is Verdict.WARN


def resolve(name: str) -> Any:
    from rvq.transport.multicast import resolve_interface

    return resolve_interface(name)


async def test_without_its_key_nothing_more_is_tried(bus: Bus) -> None:
    found = await examined(Bus(port=bus.port, key="/nonexistent/bus.key"))
    assert found["key"].verdict is Verdict.FAIL and "multicast" not in found


async def test_where_no_peer_is_it_says_what_to_start(bus: Bus) -> None:
    found = await examined(bus, peers=True, wait_s=0.1)
    assert found["peer"].verdict is Verdict.FAIL and found["loss"].verdict is Verdict.OK


def test_one_answers_and_the_other_examines(commands: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    answering = commands.start("__main__", "doctor", "--answer")
    answering.until_said("answers doctors on lo")
    assert rvq.cli.main(["doctor", "--port", str(commands.port), "--peer", "127.0.0.1"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "(127.0.0.1): " in line]
    assert [line.split()[1] for line in lines] == ["multicast", "unicast", "mtu", "loss", "clock"]
    answering.process.send_signal(signal.SIGINT)
    assert answering.ended() == 0
