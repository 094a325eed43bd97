"""The hosts of a soak and what they share: keys that change step by step, orders to a host, effects in the ledger."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from bench.soak.crew import Crew, effects, of_group
from bench.soak.schedule import GROUPS, HOSTS, SENDERS
from rvq.keyfile import read_keys
from tests.lan.network import run


def test_hosts_are_there_and_gone_again_and_keys_change_step_by_step(can_have_hosts: None, tmp_path: Path) -> None:
    with Crew(tmp_path / "soak", rate=1.0) as crew:
        namespaces = [crew.network.on(host)[-1] for host in HOSTS]
        assert all(namespace in run("ip", "netns", "list") for namespace in namespaces)
        old = read_keys(crew.key_file).in_use
        crew.add_key()
        added = read_keys(crew.key_file)
        assert added.in_use == old and len(added.live) == 2
        crew.use_key()
        used = read_keys(crew.key_file)
        assert used.live == added.live and used.in_use != old
        crew.drop_keys()
        assert list(read_keys(crew.key_file).live.values()) == [used.in_use]
        crew.set_wall("a0", 1.5)
        crew.set_sync("a0", 0.25)
        assert json.loads((crew.shared / "a0.outside").read_text()) == {"wall_s": 1.5, "sync_s": 0.25}
        assert list(effects(crew.shared)) == []
    assert not any(namespace in run("ip", "netns", "list") for namespace in namespaces)


def test_effects_are_read_as_they_happened(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ledger.db") as ledger:
        ledger.execute("CREATE TABLE effects (id TEXT, name TEXT, at REAL)")
        ledger.executemany("INSERT INTO effects VALUES (?, ?, ?)", [("a1-2", "a0.0", 2.0), ("a1-1", "a0.0", 1.0)])
    ledger.close()
    assert list(effects(tmp_path)) == [("a1-1", "a0.0", 1.0), ("a1-2", "a0.0", 2.0)]


def test_every_host_is_in_a_group_or_sends() -> None:
    assert sorted([host for group in GROUPS for host in of_group(group)] + list(SENDERS)) == sorted(HOSTS)
