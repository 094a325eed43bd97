"""The schedule of a soak: the same for the same seed, every kind in every round, nothing impossible, and peace where
it is promised."""

from __future__ import annotations

from itertools import combinations

import pytest

from bench.soak.schedule import (
    CALM_S,
    DECK,
    EVERYWHERE,
    HOSTS,
    MOURNING_S,
    OF_LINK,
    OF_PROCESS,
    RECORDERS,
    RIGHT,
    SENDERS,
    STEP_S_FAR,
    STEP_S_MAX,
    Fault,
    Kind,
    draw,
    schedule_in_words,
)

each_seed = pytest.mark.parametrize("seed", range(8))


@each_seed
def test_a_seed_draws_the_same_faults_again_and_another_others(seed: int) -> None:
    assert draw(seed, 300) == draw(seed, 300)
    assert draw(seed, 300) != draw(seed + 1, 300)


@each_seed
def test_a_longer_soak_begins_as_a_shorter_one(seed: int) -> None:
    """So that what failed late in a long one can be looked at from its beginning."""
    short = [fault for fault in draw(seed, 60) if fault.at < 20]
    assert short == [fault for fault in draw(seed, 600) if fault.at < 20]


@each_seed
def test_half_a_minute_has_most_kinds_and_two_minutes_have_all(seed: int) -> None:
    assert len({fault.kind for fault in draw(seed, 30)}) >= len(Kind) - 4
    assert {fault.kind for fault in draw(seed, 120)} == set(Kind)


@each_seed
def test_all_is_over_at_the_end_and_in_order(seed: int) -> None:
    faults = draw(seed, 120)
    assert all(fault.at >= 1 and fault.until < 120 for fault in faults)
    assert faults == sorted(faults, key=lambda fault: fault.at)


@each_seed
def test_a_host_has_one_fault_of_its_process_and_one_of_its_link_at_a_time(seed: int) -> None:
    faults = draw(seed, 600)
    for kinds in (OF_PROCESS, OF_LINK, {Kind.SPLIT}, {Kind.REKEY}, {Kind.SLOW}):
        for one, other in combinations([fault for fault in faults if fault.kind in kinds], 2):
            assert one.host != other.host or one.until < other.at or other.until < one.at, (one, other)


@each_seed
def test_faults_befall_hosts_that_there_are_and_amounts_that_make_sense(seed: int) -> None:
    for fault in draw(seed, 600):
        assert fault.host in HOSTS or fault.host == EVERYWHERE
        match fault.kind:
            case Kind.LOSS:
                assert 1 <= fault.amount <= 20
            case Kind.STEP:
                assert abs(fault.amount) <= (STEP_S_FAR if fault.host in RECORDERS else STEP_S_MAX)
            case Kind.SLOW:
                assert fault.host in RECORDERS and fault.amount > 0


def is_in_peace(death: Fault, faults: list[Fault]) -> bool:
    return not any(
        fault.until > death.at - CALM_S + 0.01 and fault.at < death.at + MOURNING_S
        for fault in faults
        if fault is not death
    )


@each_seed
def test_senders_die_in_peace_and_also_not(seed: int) -> None:
    faults = draw(seed, 600)
    deaths = [fault for fault in faults if fault.kind is Kind.KILL and fault.host in SENDERS]
    peaceful = [death for death in deaths if is_in_peace(death, faults)]
    assert len(peaceful) >= 3 and len(deaths) - len(peaceful) >= 3


def test_both_sides_of_a_split_have_someone_of_every_kind() -> None:
    for group in {*HOSTS.values()}:
        members = {host for host, of in HOSTS.items() if of == group}
        assert members & RIGHT and members - RIGHT


def test_every_kind_is_in_the_deck_and_a_schedule_can_be_read() -> None:
    assert {card.kind for card in DECK} == set(Kind)
    faults = draw(1, 60)
    assert len(list(schedule_in_words(faults))) == len(faults)
    assert " s0 " in "".join(schedule_in_words([Fault(1.0, Kind.KILL, "s0")]))
