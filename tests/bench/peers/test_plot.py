"""Pictures: every panel has something in it, and they say on what machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.peers import compare, growth, plot
from bench.peers.compare import Comparison
from bench.peers.one import Measured
from bench.peers.systems import system

pytest.importorskip("matplotlib", reason="needs matplotlib (pip install '.[bench]')")


def coloured(path: Path, rows: int, columns: int) -> list[int]:
    """How many pixels of each panel are rvq's blue."""
    from matplotlib import colors, image

    pixels: Any = image.imread(path)[:, :, :3]
    close = (abs(pixels - colors.to_rgb(plot.OURS)) < 0.02).all(axis=2)
    height, width = close.shape
    return [
        int(
            close[row * height // rows : (row + 1) * height // rows, left * width // columns :][
                :, : width // columns
            ].sum()
        )
        for row in range(rows)
        for left in range(columns)
    ]


def check(drawn: list[Path], name: str, rows: int, columns: int) -> None:
    assert [path.name for path in drawn] == [f"{name}.svg", f"{name}.png"]
    assert all(count > 100 for count in coloured(drawn[1], rows, columns))
    shapes = [each for each in ElementTree.parse(drawn[0]).iter() if plot.OURS in each.get("style", "")]
    assert len(shapes) >= rows * columns


def test_growth_is_drawn_in_every_panel(tmp_path: Path) -> None:
    runs = [Measured(1.0, 1e6, 2.0, {}, 0, control_per_s=50.0)]
    grown = growth.Growth(dict.fromkeys(growth.RECEIVERS, runs), dict.fromkeys(growth.SENDERS, runs))
    grown.heard = {members: 900.0 * members for members in growth.MEMBERS}
    check(list(plot.draw_growth(grown, tmp_path / "growth")), "growth", 2, 3)


def test_a_comparison_without_any_peer_is_drawn_in_every_panel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "_has", lambda module: False)
    comparison = Comparison(quick=True)
    for case in comparison.order(0):
        comparison.runs[case] = [Measured(1.0, 1e6, 2.0, {}, 0)]
    names = comparison.installed(compare.LATENCY)
    comparison.latency = {name: [Measured(1.0, 5000.0, 2.0, {}, 0, 30.0, 60.0)] for name in names}
    check(list(plot.draw_peers(comparison, tmp_path / "peers")), "peers", 2, 2)
