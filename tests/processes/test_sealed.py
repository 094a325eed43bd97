"""Real processes on a sealed bus: everything once, strangers get nothing, and it is re-keyed under load."""

from __future__ import annotations

import select
import socket
from pathlib import Path

import pytest

from rvq.bus import Bus
from rvq.keyfile import Keys, create_keys, new_key, read_keys, replace_keys
from rvq.transport import multicast
from rvq.wire.seal import is_sealed
from tests.processes.harness import Fleet, Verdict, Worker, await_that

RATE = 400


@pytest.fixture
def key(tmp_path: Path) -> Path:
    create_keys(tmp_path / "bus.key", Keys([new_key()]))
    return tmp_path / "bus.key"


def test_everything_is_handled_once_and_in_the_order_of_its_keys(fleet: Fleet, key: Path) -> None:
    fleet.start_receivers("r0", "r1", "r2", key=key)
    fleet.sender("a", count=3000, key=key)
    fleet.sender("b", count=500, keys=7, key=key)
    fleet.sender("c", count=20, size=300_000, key=key)
    fleet.await_senders()
    verdict = fleet.verdict()
    verdict.assert_all_once()
    keyed = [handling for handling in verdict.handled if handling.key != "-"]
    Verdict({handling.message for handling in keyed}, keyed).assert_keys_in_order()
    assert len(keyed) == 500


def test_a_killed_receiver_is_taken_over_and_another_joins(fleet: Fleet, key: Path) -> None:
    r0, r1 = fleet.start_receivers("r0", "r1", key=key, work=0.002)
    fleet.sender("a", rate=RATE, key=key)
    fleet.await_more(200)
    died = r0.kill()
    r2 = fleet.receiver("r2", key=key, work=0.002)
    fleet.await_members([r1, r2], 2)
    fleet.await_more(200, r1, r2)
    fleet.finish()
    verdict = fleet.verdict()
    verdict.assert_nothing_lost_or_invented()
    verdict.assert_repeats_only({"r0": [(died - 0.3, died)]})


def warned(worker: Worker, words: str) -> int:
    return sum("stranger at" in line and words in line for line in worker.words.splitlines())


@pytest.mark.parametrize("wrong", [False, True], ids=["without a key", "with another key"])
def test_a_stranger_sees_nothing_and_disturbs_nothing_and_it_is_said(
    fleet: Fleet, key: Path, tmp_path: Path, wrong: bool
) -> None:
    create_keys(tmp_path / "wrong.key", Keys([new_key()]))
    options = {"key": tmp_path / "wrong.key"} if wrong else {}
    members = fleet.start_receivers("r0", "r1", key=key)
    stranger = fleet.receiver("stranger", **options)
    tap = fleet.receiver("tap", tap=1, **options)
    fleet.await_members([stranger], 1)
    fleet.sender("a", rate=RATE, key=key)
    fleet.await_more(500, *members)
    words = "sealed with key" if wrong else "are not sealed"
    await_that(lambda: all(warned(worker, words) for worker in members), "they said who does not belong here")
    await_that(lambda: warned(stranger, "sealed") and warned(tap, "sealed"), "so did the strangers")
    fleet.finish()
    fleet.verdict(members).assert_all_once()
    assert stranger.started == tap.started == 0
    assert all(worker.read().members == 2 for worker in members)
    assert all(warned(worker, words) == 1 for worker in members), "once for each peer that speaks: taps say nothing"


def test_a_bus_is_rekeyed_under_load_and_nothing_is_lost(fleet: Fleet, tmp_path: Path, key: Path) -> None:
    """Each process has a file of its own, as on hosts of their own: they change one after the other."""
    old, new = read_keys(key).in_use, new_key()
    paths = {name: tmp_path / f"{name}.key" for name in ("r0", "r1", "r2", "a")}
    for path in paths.values():
        create_keys(path, Keys([old]))
    receivers = [fleet.receiver(name, key=paths[name], work=0.001) for name in ("r0", "r1", "r2")]
    fleet.await_members(receivers)
    everyone = {worker.name: worker for worker in (*receivers, fleet.sender("a", rate=RATE, key=paths["a"]))}
    for step, keys in enumerate((Keys([old, new]), Keys([old, new], new), Keys([new])), 1):
        for name, worker in everyone.items():
            fleet.await_more(50)
            replace_keys(paths[name], keys)
            await_that(lambda worker=worker, step=step: worker.words.count("from now on, and opens") == step, "it did")
    fleet.await_more(200)
    fleet.finish()
    fleet.verdict().assert_all_once()
    assert not any("stranger" in worker.words for worker in everyone.values())


class Recorder:
    """Somebody without a key on the same network: hears the label, and repeats it from wherever he likes."""

    def __init__(self, bus: Bus, label: str) -> None:
        interface = multicast.resolve_interface(bus.interface)
        addresses = (bus.control_address(label), bus.data_address(label))
        self._ears = [multicast.open_multicast(bus, interface, address) for address in addresses]
        self._targets = {ear: (address, bus.port) for ear, address in zip(self._ears, addresses, strict=True)}
        self._mouth = multicast.open_unicast(bus, interface)
        self.heard: list[tuple[tuple[str, int], tuple[str, int], bytes]] = []
        """From whom, to which address, what."""

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in (*self._ears, self._mouth):
            sock.close()

    def listen(self) -> None:
        """Takes what has come."""
        while ready := select.select(self._ears, [], [], 0)[0]:
            for ear in ready:
                datagram, source = ear.recvfrom(65_536)
                if source != self._mouth.getsockname():
                    self.heard.append((source, self._targets[ear], datagram))

    def repeat(self, source: tuple[str, int] | None = None) -> None:
        """All of it, or what one address said; from his own."""
        for who, target, datagram in self.heard:
            if source in (None, who):
                self._mouth.sendto(datagram, target)

    def repeat_as(self, source: tuple[str, int]) -> None:
        """What one said who is dead by now, from its own address."""
        with socket.socket(type=socket.SOCK_DGRAM) as mouth:
            mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(source[0]))
            mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
            mouth.bind(source)
            for who, target, datagram in self.heard:
                if who == source:
                    mouth.sendto(datagram, target)


def sources(heard: list[tuple[tuple[str, int], tuple[str, int], bytes]]) -> set[tuple[str, int]]:
    return {source for source, _, _ in heard}


def test_whoever_repeats_all_that_he_hears_changes_nothing_and_brings_back_nobody(
    fleet: Fleet, port: int, key: Path
) -> None:
    """Not for one who knew the dead one, and not for one who comes later and never heard of it."""
    with Recorder(Bus(port=port), "work") as attacker:
        (r0,) = fleet.start_receivers("r0", key=key)
        attacker.listen()
        dead = sources(attacker.heard)
        r1 = fleet.receiver("r1", key=key)
        fleet.await_members([r0, r1], 2)
        fleet.sender("a", rate=RATE, key=key)
        for _ in range(5):
            fleet.await_more(50)
            attacker.listen()
            attacker.repeat()
        r0.kill()
        fleet.await_members([r1], 1)
        r2 = fleet.receiver("r2", key=key)
        fleet.await_members([r1, r2], 2)
        seen = {worker: len(worker.tables) for worker in (r1, r2)}
        for _ in range(5):
            for source in dead:
                attacker.repeat_as(source)
            attacker.repeat()
            fleet.await_more(50, r1, r2)
        fleet.finish()
        assert dead and all(is_sealed(datagram) for _, _, datagram in attacker.heard)
        for worker, before in seen.items():
            assert max(worker.read().tables[before:], default=2) <= 2, f"{worker.name} took the dead one for alive"
    fleet.verdict().assert_nothing_lost_or_invented()
