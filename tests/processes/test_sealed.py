"""Real processes on a sealed bus: everything once, strangers get nothing, and it is re-keyed under load."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvq.keyfile import Keys, create_keys, new_key, read_keys, replace_keys
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
