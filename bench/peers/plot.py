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
    _mixed(axes[0][0], names, comparison)
    rates = [comparison.rate(name, size=1024) / 1e6 for name in names]
    _bars(axes[0][1], labels, rates, colours, "million messages/s, 1 KiB (more is better)", "{:.2f}")
    cpus = [comparison.cpu(name) for name in names]
    _bars(axes[1][0], labels, cpus, colours, "processor seconds per million, 100 B (less is better)", "{:.2f}")
    _latencies(axes[1][1], comparison)
    figure.suptitle("1 sender, 3 receivers, loopback, every message verified once", fontsize=12)
    yield from _save(plt, figure, path)


def _mixed(axis: Any, names: list[str], comparison: Comparison) -> None:
    from bench.peers.compare import IN_MIXED, SPREAD

    places = [place for place, name in enumerate(names) if name in IN_MIXED]
    rates = [comparison.rate(names[place], spread=SPREAD) / 1e6 for place in places]
    under = [place - 0.3 for place in places]  # the number of the bar stays readable
    axis.plot(rates, under, "d", color="#24292f", markersize=5, label="50 to 150 B, mixed")
    axis.legend(fontsize=8, frameon=False, loc="lower right")
    axis.set_xlim(0, max(axis.get_xlim()[1], max(rates, default=0) * 1.15))


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
    """Rate, processor time and control traffic against receivers and senders, and in the simulator to the end."""
    from bench.peers.growth import RECEIVERS_OF_SENDERS, control, cpu, rate

    plt = _pyplot()
    figure, axes = plt.subplots(2, 3, figsize=(14, 7.5))
    receivers, senders = growth.by_receivers, growth.by_senders
    of_one, to_some = "receivers of one sender", f"senders to {RECEIVERS_OF_SENDERS} receivers"
    _line(axes[0][0], {n: rate(runs) / 1e6 for n, runs in receivers.items()}, of_one, "million messages/s")
    _line(axes[0][1], {n: rate(runs) / 1e6 for n, runs in senders.items()}, to_some, "million messages/s, all together")
    _line(axes[0][2], {n: cpu(runs) for n, runs in receivers.items()}, of_one, "processor s per million, all processes")
    sent = "control datagrams/s sent by each receiver"
    _line(axes[1][0], {n: control(runs) for n, runs in receivers.items()}, of_one, sent)
    _line(axes[1][1], {n: control(runs) for n, runs in senders.items()}, to_some, sent)
    _heard(axes[1][2], growth.heard)
    figure.suptitle("rvq as the group grows: real processes on loopback (100 B, send_many -> batches())", fontsize=12)
    yield from _save(plt, figure, path)


def _line(axis: Any, points: dict[int, float], x: str, y: str) -> None:
    axis.plot(list(points), list(points.values()), "o-", color=OURS)
    for place, value in points.items():
        text = f"{value:.2f}" if value < 10 else f"{value:,.0f}"
        axis.annotate(text, (place, value), (0, 7), textcoords="offset points", ha="center", fontsize=8)
    axis.set_xlabel(x, fontsize=9)
    axis.set_title(y, fontsize=9, loc="left")
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(points), [str(place) for place in points])
    axis.minorticks_off()
    axis.margins(x=0.1)
    axis.set_ylim(0, max(*points.values(), 1e-9) * 1.2)
    _grid(axis)


def _heard(axis: Any, heard: dict[int, float]) -> None:
    """On logarithmic axes a straight line of slope 1 is linear growth."""
    from bench.peers.growth import GIGABIT_BYTES

    sizes = sorted(heard)
    values = [heard[members] / 1000 for members in sizes]
    axis.plot(sizes, values, "o-", color=OURS, label="heard")
    linear = [values[0] * members / sizes[0] for members in sizes]
    axis.plot(sizes, linear, ":", color="#57606a", label=f"linear from {sizes[0]}")
    axis.axhline(GIGABIT_BYTES / 100 / 1000, color="#cf222e", linewidth=1, label="1 % of a gigabit")
    for members, value in zip(sizes, values, strict=True):
        text = f"{value:,.3g}"
        axis.annotate(text, (members, value), (5, -10), textcoords="offset points", ha="left", fontsize=8)
    axis.set_xlabel("receivers, in the simulator (default timings)", fontsize=9)
    axis.set_title("kB/s of control heard by each receiver", fontsize=9, loc="left")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(sizes, [f"{members:,}" for members in sizes])
    axis.minorticks_off()
    axis.margins(x=0.15)
    axis.legend(fontsize=8, frameon=False, loc="upper left")
    axis.set_ylim(min(values) / 3, max(GIGABIT_BYTES / 1e5, *values) * 12)
    _grid(axis)


def _grid(axis: Any) -> None:
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


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
