"""The report of a soak: it stands for itself, and says what happened, how to have it again, and what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.soak.chaos import Sample
from bench.soak.measure import measure
from bench.soak.report import COLOURS, Report, as_dict, in_words, keep, page, timeline
from bench.soak.schedule import HOSTS, Kind
from tests.bench.soak.telling import Book

COMMAND = "make soak MINUTES=3 SEED=7"


def report(book: Book) -> Report:
    story = book.story()
    samples = [Sample(float(at), host, 30_000_000 + at) for at in range(9) for host in HOSTS]
    measured = measure(story, samples, 0.0)
    return Report(COMMAND, "2030-01-01", 0.0, 180.0, {"cores": 2}, story, book.judged(), measured)


def repeated() -> Book:
    book = Book()
    book.killed("b0.0", 4.25)
    book.handled("b1.0", 4, 6.0, again=True)
    return book


def test_a_page_stands_for_itself_and_says_how_to_have_it_again() -> None:
    text = page(report(repeated()))
    assert COMMAND in text and "every message is accounted for" in text
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "") and "<script" not in text
    for svg in text.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + svg.split("</svg>")[0] + "</svg>")


def test_what_is_wrong_is_on_the_page_and_escaped() -> None:
    book = Book()
    book.troubles.append("<a0> failed")
    text = page(report(book))
    assert "1 broken promises" in text and "&lt;a0&gt; failed" in text and "<a0>" not in text


def test_every_fault_has_a_bar_in_the_row_of_its_host() -> None:
    book = repeated()
    for kind in Kind:
        book.befell(kind, "everywhere" if kind in (Kind.SPLIT, Kind.REKEY) else "b1", 1.0, 2.0)
    root = ElementTree.fromstring(timeline(book.spans, 0.0, 10.0).split("<figcaption>")[0][len("<figure>") :])
    bars = [element for element in root.iter() if element.tag.endswith("rect")]
    assert len(bars) == len(Kind) + 1
    assert {bar.get("fill") for bar in bars} == set(COLOURS.values())
    titles = [element.text for bar in bars for element in bar]
    assert "b0.0: kill -9 0, 4.2 to 4.2 s" in titles


def test_the_json_says_the_same(tmp_path: Path) -> None:
    folder = keep(report(repeated()), tmp_path / "soak")
    kept = json.loads((folder / "report.json").read_text())
    assert kept["ok"] and kept["command"] == COMMAND
    assert kept["counts"]["audit: started again by an heir"] == 1
    assert kept["takeovers"]["kill -9"]["median_s"] == pytest.approx(1.75)
    assert kept["memory_mb_max"].keys() == HOSTS.keys()
    assert kept["faults"][0]["kind"] == "kill -9"
    assert (folder / "report.html").read_text().startswith("<!doctype html>")


def test_a_fault_that_never_ended_can_be_kept_as_json() -> None:
    book = Book()
    book.befell(Kind.STOP, "b0", 1.0, float("inf"), "b0.0")
    assert "Infinity" not in json.dumps(as_dict(report(book)))


def test_a_terminal_is_told_counts_takeovers_and_memory() -> None:
    text = "\n".join(in_words(report(repeated())))
    assert "taken over after kill -9: median 1.75 s, most 1.75 s (1 times)" in text
    assert "most memory of a process: 30 MB" in text
