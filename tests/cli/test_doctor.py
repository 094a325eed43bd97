"""What the doctor finds, and what it advises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import rvq.cli
from rvq import Receiver
from rvq.bus import Bus
from rvq.cli import doctor
from rvq.cli.doctor import Verdict, examine
from rvq.transport import multicast
from rvq.transport.multicast import Interface
from tests.conftest import ip


def verdicts(bus: Bus) -> dict[str, Verdict]:
    """The worst verdict of each subject."""
    found: dict[str, Verdict] = {}
    order = list(Verdict)
    for finding in examine(bus):
        worst = max(found.get(finding.subject, Verdict.OK), finding.verdict, key=order.index)
        found[finding.subject] = worst
    return found


def test_loopback_is_healthy(bus: Bus, capsys: pytest.CaptureFixture[str]) -> None:
    assert rvq.cli.main(["doctor", "--port", str(bus.port)]) == 0
    lines = capsys.readouterr().out.splitlines()
    subjects = [line.split()[1] for line in lines]
    assert subjects[:4] == ["interface", "route", "multicast", "multicast"] and subjects[-1] == "key"
    assert "10 of 10 heard, 10 answered" in lines[2]


def test_an_interface_that_does_not_exist_is_the_only_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert rvq.cli.main(["doctor", "--interface", "nosuch0"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 and lines[0].startswith("FAIL  interface") and "nosuch0" in lines[0]


def test_a_setting_that_cannot_be_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert rvq.cli.main(["doctor", "--port", "0"]) == 2
    assert capsys.readouterr().err.startswith("rvq doctor: port=0 is not a port")


def test_a_taken_port_is_a_failure_with_advice(bus: Bus) -> None:
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("", bus.port))
        found = {finding.subject: finding for finding in examine(bus)}
    assert found["multicast"].verdict is Verdict.FAIL
    assert f"port {bus.port} is taken" in found["multicast"].text


def test_an_interface_that_is_down_is_said(in_namespace: Callable[[Callable[[], Any]], Any]) -> None:
    assert in_namespace(lambda: verdicts(Bus())) == {"interface": Verdict.FAIL}


def test_small_buffers_are_a_warning(monkeypatch: pytest.MonkeyPatch, bus: Bus) -> None:
    monkeypatch.setattr(multicast, "receive_buffer_bytes", lambda sock: 1000)
    found = verdicts(bus)
    assert found["receive buffer"] is Verdict.WARN
    assert found["multicast"] is Verdict.OK


def test_lost_probes_are_a_warning_and_none_answered_a_failure(monkeypatch: pytest.MonkeyPatch, bus: Bus) -> None:
    monkeypatch.setattr(doctor, "_exchange", lambda *_: (9, 8))
    assert verdicts(bus)["multicast"] is Verdict.WARN
    monkeypatch.setattr(doctor, "_exchange", lambda *_: (10, 0))
    assert verdicts(bus)["multicast"] is Verdict.FAIL


def test_a_cable_that_is_pulled_is_a_warning(in_namespace: Callable[[Callable[[], Any]], Any]) -> None:
    def inside() -> dict[str, Verdict]:
        ip("link", "add", "here", "type", "veth", "peer", "name", "there")
        ip("address", "add", "10.9.0.1/24", "dev", "here")
        ip("link", "set", "dev", "here", "up")
        return verdicts(Bus(interface="here"))

    assert in_namespace(inside)["interface"] is Verdict.WARN


def test_a_small_mtu_is_a_warning() -> None:
    interface = Interface("eth7", 7, "10.0.0.1", 300, 0x1043)
    assert doctor._mtu(interface, multicast.frame_bytes_for(interface)).verdict is Verdict.WARN


async def test_others_with_another_key_or_none_are_said(bus: Bus) -> None:
    sealed, foreign = replace(bus, key=bytes(range(32))), replace(bus, key=bytes(range(1, 33)))

    def others(bus: Bus) -> list[str]:
        return [str(finding) for finding in examine(bus) if finding.subject == "others"]

    async with Receiver("work", bus=sealed):
        (understood,) = await asyncio.to_thread(others, sealed)
        (not_ours,) = await asyncio.to_thread(others, foreign)
        (theirs,) = await asyncio.to_thread(others, bus)
    assert understood.startswith("ok") and "1 heard that we understand" in understood
    assert not_ours.startswith("warn") and "which is not in our key file: compare `rvq key ls`" in not_ours
    assert theirs.startswith("warn") and "take their key file" in theirs
