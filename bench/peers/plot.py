"""Pictures of what was measured, as SVG and PNG. Needs matplotlib; says so if there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.figures import machine

if TYPE_CHECKING:
    from bench.peers.compare import Comparison
    from bench.peers.growth import Growth

OURS, THEIRS, BARE = "#1f6feb", "#9aa5b1", "#d9dee3"
LIGHT = "#8fb8f6"


class NoPlot(Exception):
    """Says why."""


def draw_peers(comparison: Comparison, path: Path) -> Iterator[Path]:
    """Rates and processor time of all systems, the fastest on top; latencies."""
    plt = _pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(13, 7.5), width_ratios=(1, 1))
    systems = sorted(comparison.systems, key=lambda system: comparison.rate(system.name))
    names = [system.name for system in systems]
    labels = [system.what for system in systems]
    colours = [OURS if name.startswith("rvq") else BARE if name.startswith("bare") else THEIRS for name in names]
    rates = [comparison.rate(name) / 1e6 for name in names]
    _bars(axes[0][0], labels, rates, colours, "million messages/s, 100 B (more is better)", "{:.2f}")
    rates = [comparison.rate(name, size=1024) / 1e6 for name in names]
    _bars(axes[0][1], labels, rates, colours, "million messages/s, 1 KiB (more is better)", "{:.2f}")
    cpus = [comparison.cpu(name) for name in names]
    _bars(axes[1][0], labels, cpus, colours, "processor seconds per million, 100 B (less is better)", "{:.2f}")
    _latencies(axes[1][1], comparison)
    figure.suptitle("1 sender, 3 receivers, loopback, every message verified once", fontsize=12)
    yield from _save(plt, figure, path)


def _latencies(axis: Any, comparison: Comparison) -> None:
    names = list(comparison.latency)[::-1]
    p50s, p99s = [comparison.p50(name) for name in names], [comparison.p99(name) for name in names]
    places = range(len(names))
    over = axis.barh([place + 0.2 for place in places], p50s, 0.38, color=OURS, label="p50")
    under = axis.barh([place - 0.2 for place in places], p99s, 0.38, color=LIGHT, label="p99")
    axis.bar_label(over, [f"{value:.0f}" for value in p50s], padding=3, fontsize=8)
    axis.bar_label(under, [f"{value:.0f}" for value in p99s], padding=3, fontsize=8)
    shown = [f"{name}, one datagram each" if name.startswith("bare") else name for name in names]
    axis.set_yticks(list(places), shown, fontsize=8)
    axis.set_title("one-way latency at 5,000 messages/s, µs (less is better)", fontsize=9, loc="left")
    axis.legend(fontsize=8, frameon=False, loc="upper right")
    _plain(axis, max(p99s))


def _bars(axis: Any, labels: list[str], values: list[float], colours: list[str], title: str, form: str) -> None:
    bars = axis.barh(labels, values, color=colours)
    axis.bar_label(bars, [form.format(value) for value in values], padding=3, fontsize=8)
    axis.set_title(title, fontsize=9, loc="left")
    axis.tick_params(labelsize=8)
    _plain(axis, max(values))


def _plain(axis: Any, most: float) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_xlim(0, most * 1.15)
    axis.tick_params(axis="x", labelsize=8)


def draw_growth(growth: Growth, path: Path) -> Iterator[Path]:
    """Against the number of receivers, of senders, and of members in the simulator."""
    from bench.peers.growth import control, cpu, rate

    plt = _pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(11, 7))
    receivers = growth.by_receivers
    rates = {n: rate(runs) / 1e6 for n, runs in receivers.items()}
    _line(axes[0][0], rates, "receivers of one sender", "million messages/s")
    senders = {n: rate(runs) / 1e6 for n, runs in growth.by_senders.items()}
    _line(axes[0][1], senders, "senders to four receivers", "million messages/s, all together")
    cpus = {n: cpu(runs) for n, runs in receivers.items()}
    _line(axes[1][0], cpus, "receivers of one sender", "processor seconds per million messages")
    other = axes[1][0].twinx()
    other.plot(list(receivers), [control(runs) for runs in receivers.values()], "o--", color=THEIRS)
    other.set_ylabel("control datagrams/s sent by each (dashed)", fontsize=9)
    other.set_ylim(bottom=0)
    heard = {n: value / 1000 for n, value in growth.heard.items()}
    _line(axes[1][1], heard, "members, in the simulator", "kB/s of control heard by each")
    figure.suptitle("rvq as the group grows (100 B, send_many -> batches())", fontsize=12)
    yield from _save(plt, figure, path)


def _line(axis: Any, points: dict[int, float], x: str, y: str) -> None:
    axis.plot(list(points), list(points.values()), "o-", color=OURS)
    axis.set_xlabel(x, fontsize=9)
    axis.set_ylabel(y, fontsize=9)
    axis.set_ylim(0, max(points.values()) * 1.15)
    axis.set_xlim(left=0)
    axis.grid(alpha=0.25)
    axis.spines[["top"]].set_visible(False)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise NoPlot("matplotlib is not installed (pip install '.[bench]')") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _save(plt: Any, figure: Any, path: Path) -> Iterator[Path]:
    facts = machine()
    where = f"{facts['processor']}, {facts['cores']} cores, Linux {facts['kernel']}, Python {facts['python']}"
    figure.text(0.01, 0.008, f"{where}, {facts['at']}", fontsize=7, color="#57606a")
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    for suffix in (".svg", ".png"):
        figure.savefig(path.with_suffix(suffix), dpi=120)
        yield path.with_suffix(suffix)
    plt.close(figure)
