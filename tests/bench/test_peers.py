"""The benches beside the peers run, with a few messages each. No time is asserted: this machine may be busy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.figures import Figure
from bench.peers import compare, growth, plot
from bench.peers.board import Board, Tally, make_bodies, numbers_in
from bench.peers.commands import measure_lines
from bench.peers.compare import Comparison, lines_of
from bench.peers.one import Measured, measure
from bench.peers.servers import Server
from bench.peers.systems import SYSTEMS, Job, bare, pace


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Server]]:
    """Those that are installed, started when first asked for."""
    started: dict[str, Server] = {}
    yield started
    for server in started.values():
        server.__exit__(None, None, None)


def job_of(name: str, servers: dict[str, Server], senders: int, receivers: int, rate: float = 0.0) -> Job:
    system = SYSTEMS[name]
    if system.missing:
        pytest.skip(system.missing)
    port = pid = 0
    if system.server:
        if system.server not in servers:
            servers[system.server] = Server(system.server).__enter__()
        port, pid = servers[system.server].port, servers[system.server].pid
    return Job(name, senders, receivers, 500, 100, rate=rate, port=port, server_pid=pid)


@pytest.mark.parametrize("shape", [(1, 3), (2, 2)], ids="{0[0]}x{0[1]}".format)
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_hands_out_every_message_once(
    name: str, shape: tuple[int, int], servers: dict[str, Server]
) -> None:
    measured = measure(job_of(name, servers, *shape))
    assert measured.wrong == 0
    assert measured.rate > 0
    assert measured.cpu_s_per_million > 0


@pytest.mark.parametrize("name", compare.LATENCY)
def test_latencies_are_measured_one_message_at_a_time(name: str, servers: dict[str, Server]) -> None:
    measured = measure(job_of(name, servers, 1, 3, rate=5000.0))
    assert measured.wrong == 0
    assert 0 < measured.p50_us <= measured.p99_us


def test_the_commands_pass_every_line_once() -> None:
    assert measure_lines(2000).wrong == 0


def test_control_traffic_is_counted_in_the_simulator() -> None:
    few, many = growth.control_bytes_per_s(2), growth.control_bytes_per_s(6)
    assert 0 < few < many


def test_what_is_handed_out_is_kept_and_counted(tmp_path: Path) -> None:
    board = Board(2)
    tally = Tally(board, 1)
    for body in make_bodies(0, 3, 20):
        tally.seen += body[:8]
    tally.tell()
    tally.keep(tmp_path / "log")
    assert board.counted(1) == 3 and board.counted(0) == 0
    assert board.last_at(1) > 0
    assert list(numbers_in(tmp_path / "log")) == [0, 1, 2]


def test_a_latency_travels_with_its_number(tmp_path: Path) -> None:
    tally = Tally(Board(1), 0)
    pace.note(tally, (7).to_bytes(8, "little") + pace.monotonic_ns().to_bytes(8, "little"))
    tally.keep(tmp_path / "log")
    noted = numbers_in(tmp_path / "log")
    assert pace.numbers(noted) == [7]
    assert 0 <= pace.latencies_us(noted)[0] < 60e6


def test_a_bare_datagram_says_where_each_message_is() -> None:
    assert bare.pack([b"ab", b"c"]) == b"\x02\x00\x08\x00\x0a\x00\x0b\x00abc"


def made_up(quick: bool = False) -> Comparison:
    """As if it had been measured."""
    comparison = Comparison(quick)
    for case in comparison.order(0):
        comparison.runs[case] = [Measured(1.0, 1000.0 * len(case[0]), 2.0, {}, 0)] * 3
    comparison.latency = {name: [Measured(1.0, 5000.0, 2.0, {}, 0, 30.0, 60.0)] for name in compare.LATENCY}
    return comparison


def test_the_table_names_all_systems_and_those_that_were_skipped() -> None:
    comparison = made_up()
    comparison.skipped["something"] = "it is not installed"
    text = "\n".join(lines_of(comparison))
    assert all(system.what in text for system in comparison.systems)
    assert "skipped: something: it is not installed" in text


def test_pictures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    one = [Measured(1.0, 1000.0, 2.0, {}, 0, control_per_s=50.0)]
    grown = growth.Growth({1: one, 2: one, 8: one}, {1: one}, {10: 1000.0, 20: 2000.0})
    drawn = [*plot.draw_peers(made_up(), tmp_path / "peers"), *plot.draw_growth(grown, tmp_path / "growth")]
    assert [path.name for path in drawn] == ["peers.svg", "peers.png", "growth.svg", "growth.png"]
    assert all(path.stat().st_size > 1000 for path in drawn)


def test_a_figure_says_what_it_must_be_in_its_unit() -> None:
    assert Figure("rate", 3.0, "x pyzmq", least=4).must == ">= 4 x pyzmq"
