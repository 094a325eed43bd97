"""One machine on a loop: what it says is sent, it is woken when it asked to be, and nothing happens after its end."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import Any, cast

import pytest
import uvloop

from rvq import aio
from rvq.aio import driver as driver_module
from rvq.aio.driver import Driver, Signal
from rvq.core.machine import Address, Datagram, Route, Wall
from rvq.transport.udp import Endpoint
from tests.aio.ends import on_both_loops, soon, stays, until


class FakeMachine:
    """Says what it is told to say, and notes what it is told."""

    def __init__(self) -> None:
        self.deadline = math.inf
        self.wall = Wall(0.0)
        self.outgoing: list[Datagram] = []
        self.heard: list[tuple[bytes, Address]] = []
        self.woken: list[float] = []

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        self.heard.append((datagram, source))

    def wake(self, now: float) -> None:
        self.woken.append(now)
        self.deadline = math.inf

    def next_deadline(self) -> float:
        return self.deadline

    def take_outgoing(self) -> list[Datagram]:
        outgoing, self.outgoing = self.outgoing, []
        return outgoing

    def check_invariants(self) -> None: ...


class FakeEndpoint:
    """Keeps what is sent."""

    def __init__(self, *warnings: str) -> None:
        self.warnings = warnings
        self.sent: list[Datagram] = []
        self.closed = 0
        self.on_datagram: Any = None
        self.on_drained: Any = None

    def start(self, loop: asyncio.AbstractEventLoop, on_datagram: Any, on_drained: Any) -> None:
        self.on_datagram, self.on_drained = on_datagram, on_drained

    def send(self, target: Any, datagram: bytes) -> None:
        assert not self.closed
        self.sent.append((target, datagram))

    def close(self) -> None:
        self.closed += 1


class Scene:
    """A driver with its fakes."""

    def __init__(self, *warnings: str) -> None:
        self.machine, self.endpoint = FakeMachine(), FakeEndpoint(*warnings)
        self.changes = 0
        self.driver = Driver(self.machine, cast(Endpoint, self.endpoint), self._on_change)

    def _on_change(self) -> None:
        self.changes += 1


async def test_it_sends_what_the_machine_says_and_tells_of_the_change() -> None:
    scene = Scene()
    assert scene.changes == 1, "what a machine says at its start is not kept waiting"
    scene.machine.outgoing = [(Route.DATA, b"data"), (("127.0.0.1", 9), b"answer")]
    scene.driver.step()
    assert scene.endpoint.sent == [(Route.DATA, b"data"), (("127.0.0.1", 9), b"answer")]
    assert scene.changes == 2
    scene.driver.close()


async def test_datagrams_reach_the_machine_and_its_answers_leave_once_the_socket_is_dry() -> None:
    scene = Scene()
    scene.endpoint.on_datagram(b"one", ("127.0.0.1", 1))
    scene.endpoint.on_datagram(b"two", ("127.0.0.1", 2))
    scene.machine.outgoing = [(Route.CONTROL, b"answer")]
    assert scene.endpoint.sent == []
    scene.endpoint.on_drained()
    assert scene.machine.heard == [(b"one", ("127.0.0.1", 1)), (b"two", ("127.0.0.1", 2))]
    assert scene.endpoint.sent == [(Route.CONTROL, b"answer")]
    scene.driver.close()


@on_both_loops
async def test_the_machine_is_woken_at_its_deadline_and_not_before() -> None:
    scene = Scene()
    deadline = scene.machine.deadline = time.monotonic() + 0.05
    scene.driver.step()
    await until(lambda: scene.machine.woken)
    assert scene.machine.woken[0] >= deadline
    await stays(lambda: len(scene.machine.woken) == 1, 0.1)
    scene.driver.close()


async def test_an_earlier_deadline_is_not_missed() -> None:
    scene = Scene()
    scene.machine.deadline = time.monotonic() + 3600
    scene.driver.step()
    scene.machine.deadline = time.monotonic() + 0.02
    scene.driver.step()
    await until(lambda: scene.machine.woken)
    scene.driver.close()


async def test_a_later_deadline_wakes_nobody_too_early() -> None:
    scene = Scene()
    scene.machine.deadline = time.monotonic() + 0.02
    scene.driver.step()
    deadline = scene.machine.deadline = time.monotonic() + 0.15
    scene.driver.step()
    await until(lambda: scene.machine.woken)
    assert len(scene.machine.woken) == 1
    assert scene.machine.woken[0] >= deadline
    scene.driver.close()


async def test_a_machine_without_a_deadline_is_left_alone() -> None:
    scene = Scene()
    await stays(lambda: not scene.machine.woken, 0.1)
    scene.driver.close()


async def test_closing_says_what_is_left_to_say() -> None:
    scene = Scene()
    scene.machine.outgoing = [(Route.CONTROL, b"goodbye")]
    scene.driver.close()
    assert scene.endpoint.sent == [(Route.CONTROL, b"goodbye")]
    assert scene.endpoint.closed == 1


async def test_after_its_end_nothing_is_sent_and_nobody_is_woken() -> None:
    scene = Scene()
    scene.machine.deadline = time.monotonic() + 0.02
    scene.driver.step()
    scene.driver.close()
    scene.driver.close()
    scene.machine.outgoing = [(Route.DATA, b"late")]
    scene.driver.send()
    await stays(lambda: not scene.machine.woken, 0.1)
    assert scene.endpoint.sent == []
    assert scene.endpoint.closed == 1


async def test_a_warning_about_the_host_is_logged_once_per_process(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "_warned", set())
    with caplog.at_level(logging.WARNING, "rvq"):
        for _ in range(2):
            Scene("buffer is small: run `sysctl ...`").driver.close()
    assert [record.message for record in caplog.records] == ["buffer is small: run `sysctl ...`"]


async def test_a_signal_wakes_everyone_who_waits() -> None:
    signal = Signal()
    waiting = [asyncio.create_task(signal.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    signal.fire()
    await soon(asyncio.gather(*waiting))


async def test_a_signal_is_not_remembered() -> None:
    signal = Signal()
    signal.fire()
    waiting = asyncio.create_task(signal.wait())
    await stays(lambda: not waiting.done(), 0.05)
    signal.fire()
    await soon(waiting)


async def test_one_who_no_longer_waits_does_not_keep_the_others_from_waking() -> None:
    signal = Signal()
    gone, there = asyncio.create_task(signal.wait()), asyncio.create_task(signal.wait())
    await asyncio.sleep(0)
    gone.cancel()
    signal.fire()
    await soon(there)
    await asyncio.wait([gone])
    assert gone.cancelled()
    assert not signal._waiting


def test_run_is_like_asyncio_run_on_uvloop() -> None:
    async def main() -> type:
        return type(asyncio.get_running_loop())

    assert aio.run(main()) is uvloop.Loop


def test_run_hands_on_what_is_raised() -> None:
    async def main() -> None:
        raise LookupError("on purpose")

    with pytest.raises(LookupError, match="on purpose"):
        aio.run(main())


async def test_a_machine_that_departs_has_the_last_word() -> None:
    class Departing(FakeMachine):
        def depart(self) -> None:
            self.outgoing = [(Route.CONTROL, b"gone")]

    machine, endpoint = Departing(), FakeEndpoint()
    driver = Driver(machine, cast(Endpoint, endpoint), lambda: None)
    machine.outgoing = [(Route.CONTROL, b"goodbye")]
    driver.close()
    driver.close()
    assert endpoint.sent == [(Route.CONTROL, b"goodbye"), (Route.CONTROL, b"gone")]
