"""The model of who owns a message: all its runs keep the promises, and without any one of its rules some do not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.core.lanes import heir_may_ask_at, ownership
from rvq.core.stamps import Segment
from rvq.sim.mutants import MUTANTS
from rvq.timings import CLOCK_RATE_ERROR, Timings
from rvq.wire.frames import Member, Silence
from tests.model.spin import LARGER, MODEL, Broken, Verdict, missing_tools, search

PAGE = Path(__file__).parents[2] / "docs" / "model.md"

needs_spin = pytest.mark.skipif(
    bool(missing_tools()), reason=f"missing: {' '.join(missing_tools())} (apt-get install spin gcc)"
)

TWO_STAMPS = ("RECEIVERS=2", "STAMPS=2")
THREE_STAMPS = ("RECEIVERS=2", "STAMPS=3")
FOUR_STAMPS = ("RECEIVERS=2", "STAMPS=4")
THREE_RECEIVERS = ("RECEIVERS=3", "STAMPS=2")
CALM = (*TWO_STAMPS, "CALMS")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that the model can be without: what then breaks, in how small a world, and which mutant is its like."""

    flags: tuple[str, ...]
    broken: Broken | None
    world: tuple[str, ...] = TWO_STAMPS
    mutant: str | None = None
    """In rvq.sim.mutants."""


RULES = [
    Rule(("NO_LEASE",), Broken.TWO_OWNERS, mutant="no-lease"),
    Rule(("LEASE_FROM_ECHO",), Broken.TWO_OWNERS, mutant="lease-from-echo"),
    Rule(("ECHO_WITHOUT_STAMPS",), Broken.TWO_OWNERS, THREE_STAMPS, mutant="echo-without-stamps"),
    Rule(("BY_TABLE",), Broken.TWO_OWNERS, mutant="no-stamps"),
    Rule(("LET_IN_AGAIN_OWNS_AGAIN",), Broken.TWO_OWNERS, THREE_STAMPS),
    Rule(("NO_HEIR_WAIT", "ANSWERS_AT_ONCE"), Broken.TWO_OWNERS, mutant="no-lease-wait"),
    Rule(("GOODBYE_BEFORE_STOPPING",), Broken.TWO_OWNERS),
    Rule(("HANDS_OVER_WITHOUT_STOPPING",), Broken.TWO_OWNERS, mutant="hands-over-without-stopping"),
    Rule(("OLD_HAND_OVERS_COUNT",), Broken.TWO_OWNERS, FOUR_STAMPS),
    Rule(("SLOW=2",), Broken.TWO_OWNERS),
    Rule(("HEIR_DOES_NOT_ASK",), Broken.REPEATED, mutant="heir-does-not-ask"),
    Rule(("REPORTS_OPEN_ONES",), Broken.LOST, mutant="reports-open-ones"),
    Rule(("NO_STRIKES",), Broken.STUCK, CALM, mutant="no-strikes"),
    Rule(("HEARS_ONE_WAY",), Broken.STUCK, CALM, mutant="one-way"),
    Rule(("JOINERS_IGNORE_OPEN_STAMPS",), Broken.STUCK, CALM, mutant="joiners-ignore-open-stamps"),
    Rule(("TABLES_WITHOUT_SLOTS",), Broken.STUCK, CALM),
]

SPARE = [("NO_HEIR_WAIT",), ("ANSWERS_AT_ONCE",)]
"""The heir waits, and the sender does not answer it too early: while the sender lives, either is enough."""


@needs_spin
@pytest.mark.parametrize("world", [THREE_STAMPS, THREE_RECEIVERS], ids=" ".join)
def test_nobody_starts_what_is_anothers_or_done_whatever_happens(tmp_path: Path, world: tuple[str, ...]) -> None:
    verdict = search(world, tmp_path, optimise="-O1")
    assert verdict.broken is None and verdict.complete
    assert verdict.states > 100_000


@needs_spin
def test_whenever_it_becomes_calm_the_message_is_done(tmp_path: Path) -> None:
    verdict = search(CALM, tmp_path)
    assert verdict.broken is None and verdict.complete
    assert verdict.states > 100_000


@needs_spin
def test_no_line_of_the_model_is_there_for_nothing(tmp_path: Path) -> None:
    """What no run comes to proves nothing: all of it is come to, but for the end of what never ends."""
    assert all("-end-" in line for line in search(THREE_STAMPS, tmp_path).unreached)


@needs_spin
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: " ".join(rule.flags))
def test_without_a_rule_it_breaks(tmp_path: Path, rule: Rule) -> None:
    assert search((*rule.world, *rule.flags), tmp_path).broken is rule.broken


@needs_spin
@pytest.mark.parametrize("flags", SPARE, ids=" ".join)
def test_of_the_two_waits_either_is_enough(tmp_path: Path, flags: tuple[str, ...]) -> None:
    verdict = search((*TWO_STAMPS, *flags), tmp_path)
    assert verdict == Verdict(None, True, verdict.states, verdict.unreached)


# --- what ties the model to the code ------------------------------------------------------------------------------


def macros() -> set[str]:
    """The names under which rules are left out."""
    names = re.findall(r"^#(?:ifdef|ifndef) (\w+)|defined\((\w+)\)", MODEL.read_text(), re.MULTILINE)
    sizes = {"RECEIVERS", "STAMPS", "LEASE", "SLOW", "HEIR_WAIT", "CALMS"}
    return {name for pair in names for name in pair if name} - sizes


def test_every_rule_that_can_be_left_out_is_left_out_somewhere_and_has_its_row() -> None:
    sizes = ("RECEIVERS", "STAMPS", "LEASE=", "CALMS")
    flags = {flag for one in (*RULES, *LARGER) for flag in one.flags}
    left_out = {flag for flag in flags if not flag.startswith(sizes)}
    assert macros() == left_out - {"SLOW=2"}
    page = PAGE.read_text()
    assert [name for name in sorted(left_out) if f"`{name}`" not in page] == []


def test_mutants_of_the_model_and_of_the_simulator_have_the_same_names() -> None:
    assert {rule.mutant for rule in RULES if rule.mutant} <= MUTANTS.keys()
    page = PAGE.read_text()
    assert [rule.mutant for rule in RULES if rule.mutant and f"`{rule.mutant}`" not in page] == []


@given(st.floats(0.01, 100), st.floats(0.03, 300))
def test_an_heir_waits_as_long_as_the_slowest_clock_can_draw_out_a_lease(heartbeat: float, lease: float) -> None:
    """HEIR_WAIT is LEASE + SLOW in the model, whatever the timings: with SLOW=2 it breaks."""
    if lease >= 3 * heartbeat:
        timings = Timings(heartbeat, 3 * heartbeat, lease, orphan_for=lease + 3 * heartbeat)
        assert timings.heir_wait >= timings.lease * (1 + CLOCK_RATE_ERROR)


IDS = (1, 2, 3, 4)
TIMINGS = Timings()


@st.composite
def streams(draw: st.DrawFn) -> list[Segment]:
    """Stamps as the model's sender writes them: any members, any draining, never without slots."""
    segments: list[Segment] = []
    for stamp in range(1, draw(st.integers(2, 5)) + 1):
        members = draw(st.sets(st.sampled_from(IDS), min_size=1))
        draining = draw(st.sets(st.sampled_from(IDS))) - members
        silent = draw(st.dictionaries(st.sampled_from(IDS), st.floats(0, 2)))
        segments.append(
            Segment(
                stamp,
                stamp * 10,
                stamp * 10 + 9,
                False,
                tuple(Member(id, 1) for id in sorted(members)),
                tuple(sorted(draining)),
                tuple(Silence(id, seconds) for id, seconds in silent.items()),
            )
        )
    return segments


@settings(max_examples=200)
@given(streams())
def test_the_code_passes_messages_on_as_the_model_does(segments: list[Segment]) -> None:
    """`switch_to`, CAN_INHERIT and `learn` of the model, beside `ownership` and `heir_may_ask_at`."""
    learned_at = {segment.stamp: 100.0 * segment.stamp for segment in segments}
    for slot in range(len(segments[0].slots)):
        owner, stayed = segments[0].slots[slot], segments[0].everyone
        waits = 0.0
        for later, segment in enumerate(segments[1:], 1):
            (part,) = ownership(segments[: later + 1], 0)[slot]
            members = segment.member_ids
            if owner in segment.everyone:
                assert part.owner == owner
            else:
                assert part.owner in (members & stayed or members)
                silence = segment.silence_of(owner) or 0.0
                waits = max(waits, learned_at[segment.stamp] + max(0.0, TIMINGS.heir_wait - silence))
            stayed &= segment.everyone
            owner = part.owner
            assert heir_may_ask_at(part.losses, learned_at, TIMINGS) == waits
