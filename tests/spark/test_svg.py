"""Plots are whole SVG, with every series, mark and name in them, whatever the numbers."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from rvq.spark.svg import lines, nice, shares

SERIES = {"a <b>": [(1000.0, 5.0), (1010.0, 7.0), (1020.0, 0.0)], "c": [(1000.0, 15.0), (1020.0, 30.0)]}


def parsed(page: str) -> ET.Element:
    return ET.fromstring(page)


@pytest.mark.parametrize(("value", "top"), [(0, 1), (3, 5), (10, 10), (11, 20), (230, 250), (0.003, 0.005)])
def test_an_axis_ends_at_a_round_number(value: float, top: float) -> None:
    assert nice(value) == pytest.approx(top)


def test_a_line_has_all_its_points_and_the_marks_are_there() -> None:
    page = parsed(lines(SERIES, "messages per second", [(1005.0, "table 2"), (9999.0, "elsewhere")]))
    places = [line.get("points", "").split() for line in page.iterfind(".//{*}polyline")]
    assert [len(points) for points in places] == [3, 2]
    heights = [float(point.split(",")[1]) for point in places[0]]
    assert heights[1] < heights[0] < heights[2], "more is higher"
    assert [g.findtext("{*}title") for g in page.iterfind(".//{*}g")] == ["a <b>", "c", "table 2"]


def test_shares_are_parts_of_a_hundred() -> None:
    page = parsed(shares(SERIES))
    titles = [rect.findtext("{*}title") for rect in page.iterfind(".//{*}rect")]
    assert titles == ["a <b>: 25.0 %", "a <b>: 100.0 %", "a <b>: 0.0 %", "c: 75.0 %", "c: 100.0 %"]


@pytest.mark.parametrize("series", [{}, {"a": []}, {"a": [(5.0, 0.0)]}, {"a": [(5.0, 3.0)]}])
def test_little_is_drawn_as_well(series: dict[str, list[tuple[float, float]]]) -> None:
    parsed(lines(series, "x"))
    parsed(shares(series))
