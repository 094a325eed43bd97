"""Who else is there, in words."""

from __future__ import annotations

import pytest

from rvq.aio.checkup.bystanders import Bystanders
from rvq.cli.checkup.finding import Verdict
from rvq.cli.checkup.others import bystander_findings, nobody_finding, stranger_findings

STRANGER = {"10.0.0.9": "its frames are sealed with key 12ab which is not in our key file: compare `rvq key ls`"}


def test_a_bus_without_others_is_well() -> None:
    (finding,) = bystander_findings(Bystanders())
    assert finding.verdict is Verdict.OK and "nobody else" in finding.text


def test_those_who_are_there_are_counted_with_their_hosts() -> None:
    heard = Bystanders({1: ("host-b", False), 2: ("host-a", False), 3: ("host-b", True)})
    (finding,) = bystander_findings(heard)
    assert finding.text == "2 receivers and 1 sender heard, on host-a, host-b"
    many = Bystanders({number: (f"h{number}", False) for number in range(9)})
    (finding,) = bystander_findings(many)
    assert finding.text.endswith("h0, h1, h2, h3, h4 and 4 more")


@pytest.mark.parametrize(("ends", "verdict"), [({1: ("a", False)}, Verdict.WARN), ({}, Verdict.FAIL)])
def test_if_all_are_strangers_it_is_we_who_are_wrong(ends: dict[int, tuple[str, bool]], verdict: Verdict) -> None:
    *_, finding = bystander_findings(Bystanders(ends, dict(STRANGER)))
    assert (finding.verdict, finding.subject, finding.peer) == (verdict, "key", "10.0.0.9")
    assert finding.text.endswith("not in our key file") and finding.change.startswith("compare")


def test_each_stranger_has_a_finding_of_its_own() -> None:
    strangers = {"10.0.0.9": "a: b", "10.0.0.10": "c: d"}
    assert [finding.peer for finding in stranger_findings(strangers, broken=True)] == ["10.0.0.10", "10.0.0.9"]


def test_nobody_is_a_failure_with_what_to_start() -> None:
    assert nobody_finding(60, None).verdict is Verdict.FAIL
    assert "rvq doctor --peer" in nobody_finding(60, None).change
    assert "10.0.0.7 answered within 0.5 s" in nobody_finding(0.5, "10.0.0.7").text
