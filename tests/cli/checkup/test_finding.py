"""How a finding reads, for people and for scripts."""

from __future__ import annotations

import json
from dataclasses import replace

from rvq.cli.checkup.finding import Verdict, fail, ok, warn


def test_a_line_has_the_verdict_the_subject_and_what_to_change() -> None:
    assert str(ok("mtu", "1500")) == "ok    mtu             1500"
    assert str(warn("loss", "3 lost", "see the cable")) == "warn  loss            3 lost: see the cable"
    of_peer = replace(fail("key", "another one", "copy it"), peer="host-b (10.0.0.2)")
    assert str(of_peer) == "FAIL  key             host-b (10.0.0.2): another one: copy it"


def test_only_what_fails_is_broken() -> None:
    assert [finding.is_broken for finding in (ok("a", ""), warn("a", "", ""), fail("a", ""))] == [False, False, True]


def test_scripts_get_the_same_with_the_figures() -> None:
    told = json.loads(json.dumps(warn("loss", "3 lost", "see the cable", lost_there=3).as_json()))
    assert told == {
        "verdict": Verdict.WARN.value,
        "subject": "loss",
        "peer": None,
        "text": "3 lost",
        "change": "see the cable",
        "facts": {"lost_there": 3},
    }
