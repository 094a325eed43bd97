"""The page of metrics: all that is counted is on it, with its labels, and the dashboard asks for nothing else."""

from __future__ import annotations

import asyncio
import builtins
import json
import re
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import rvq
from rvq.aio.metrics import COUNTERS, GAUGES, Collector, parse_address
from rvq.core.stats import Stats
from tests.aio.ends import soon, taken, until

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana.json"


def read(page: Any) -> str:
    with urllib.request.urlopen(f"http://{page.host}:{page.port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def values(text: str, name: str) -> dict[str, float]:
    """By the end's role and, of gauges by group, its group."""
    found = re.findall(rf"^{name}{{(.*)}} (\S+)$", text, re.M)
    return {" ".join(re.findall(r'(?:role|group)="([^"]+)"', labels)): float(value) for labels, value in found}


async def test_what_ends_count_is_on_the_page_with_their_labels(bus: rvq.Bus, tmp_path: Path) -> None:
    sender = rvq.Sender("work", bus=bus)
    receiver = rvq.Receiver("work", bus=bus, ack="manual")
    tap = rvq.Receiver("work", group=None, bus=bus)
    recorder = rvq.Recorder(tmp_path, "work", bus=bus)
    with rvq.metrics.serve(0, sender, receiver, tap, recorder) as page:
        assert "rvq_acked_total{" not in await asyncio.to_thread(read, page), "nothing is open yet"
        async with sender, receiver, tap, recorder:
            await until(lambda: len(sender.tables) == 2)
            await sender.send_many(range(10))
            await taken(receiver, 10)
            await sender.flush(20)
            await soon(rvq.admin.pause("work", bus=bus))
            await until(lambda: sender.machine.gauges_by_group["default"]["paused"])
            text = await asyncio.to_thread(read, page)
            await soon(rvq.admin.resume("work", bus=bus))
        assert values(text, "rvq_inserted_total") == {
            "sender": 10,
            "default receiver": 0,
            "tap": 0,
            "journal recorder": 0,
        }
        assert values(text, "rvq_acked_total") == {
            "sender": 10,
            "default receiver": 10,
            "tap": 0,
            "journal recorder": 10,
        }
        assert values(text, "rvq_paused") == {
            "default sender": 1,
            "journal sender": 0,
            "default receiver": 1,
            "journal recorder": 0,
        }
        assert values(text, "rvq_undone") == {"sender": 0}
        assert values(text, "rvq_window_bytes") == {"sender": 32 * 1024 * 1024}
        assert values(text, "rvq_slots")["default receiver"] == 1
        assert values(text, "rvq_backlog")["default receiver"] == 0
        assert f'id="{receiver.id:016x}"' in text and 'label="work"' in text
        assert "rvq_lane_acked" not in text


async def test_lanes_and_shards_are_there_on_demand(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send("a", key="k")
        await taken(receiver, 1)
        with rvq.metrics.serve(0, receiver, parts=True) as page:
            text = await asyncio.to_thread(read, page)
    assert re.search(r'^rvq_lane_acked_total{.*lane="0".*} 1.0$', text, re.M)
    assert re.search(r'^rvq_shard_acked_total{.*shard="\d+".*} 1.0$', text, re.M)


def test_every_counter_of_the_catalogue_is_exported() -> None:
    assert set(COUNTERS) == set(Stats().as_dict()) - {"lanes", "shards"}
    assert {family.name for family in Collector([]).collect()} == {f"rvq_{name}" for name in (*COUNTERS, *GAUGES)}


async def test_a_taken_port_is_said_with_advice(bus: rvq.Bus) -> None:
    with socket.socket() as taken_port:
        taken_port.bind(("127.0.0.1", 0))
        taken_port.listen()
        port = taken_port.getsockname()[1]
        with pytest.raises(rvq.BusError, match=rf"127.0.0.1:{port} \(Address already in use\): choose another port"):
            rvq.metrics.serve(port)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **options: Any) -> Any:
        if name.startswith("prometheus_client"):
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(rvq.RvqError, match=r"pip install 'rvq\[metrics\]'"):
        rvq.metrics.serve(0)


def test_a_page_is_closed_twice_without_harm() -> None:
    page = rvq.metrics.serve("127.0.0.1:0")
    page.close()
    page.close()
    with pytest.raises(OSError):
        read(page)


def test_the_page_is_on_loopback_unless_a_host_is_named() -> None:
    assert parse_address(9100) == ("127.0.0.1", 9100)
    assert parse_address("9100") == ("127.0.0.1", 9100)
    assert parse_address("10.0.0.1:9100") == ("10.0.0.1", 9100)
    assert parse_address("[::1]:9100") == ("::1", 9100)


@pytest.mark.parametrize("port", [-1, 65536, "x", "", ":", "host:", "1.5", None, True])
def test_what_is_no_port_is_refused(port: Any) -> None:
    with pytest.raises(rvq.BadArgument, match="is not a port"):
        parse_address(port)


def test_what_has_no_metrics_is_refused() -> None:
    with pytest.raises(rvq.BadArgument, match="has no metrics"):
        rvq.metrics.serve(0, "work")  # type: ignore[arg-type]


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    asked = {name for query in queries for name in re.findall(r"\brvq_\w+", query)}
    there = {f"rvq_{name}_total" for name in COUNTERS} | {f"rvq_{name}" for name in GAUGES}
    assert asked and asked <= there
    assert {"rvq_acked_total", "rvq_undone", "rvq_backlog", "rvq_paused", "rvq_table_version"} <= asked
    variables = [variable["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    assert all(re.search(r"label_values\(rvq_\w+", query) for query in variables)
