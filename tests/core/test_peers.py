"""Who is known, who is asked, and what a stranger can make us remember."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random

import pytest

from rvq import limits
from rvq.core.peers import ASK_S, ASK_S_MAX, FORMER_S, NEWCOMER_S, Peers


def some_peers(*seeds: str) -> Peers:
    peers = Peers(Random(1))
    peers.use_seeds(0.0, seeds)
    return peers


def meet(peers: Peers, address: str, id: int, joined: tuple[int, ...] = (1,), now: float = 0.0) -> bool:
    number = peers.ask(now, address, NEWCOMER_S)
    assert number is not None
    met = peers.confirm(now, address, number, id, joined)
    peers.check_invariants()
    return met


def test_only_the_number_that_was_asked_there_makes_somebody_known() -> None:
    peers = some_peers("a", "b")
    asked = dict(peers.due(0.0))
    assert asked.keys() == {"a", "b"}
    assert not peers.confirm(0.0, "a", asked["b"], 7, ())
    assert not peers.confirm(0.0, "c", asked["a"], 7, ())
    assert not peers.known
    assert peers.confirm(0.0, "a", asked["a"], 7, ())
    assert not peers.confirm(0.0, "a", asked["a"], 7, ()), "once"
    assert list(peers.known) == ["a"]


def test_seeds_are_asked_for_ever_and_ever_less_often() -> None:
    peers = some_peers("a")
    asked, now = [], 0.0
    while now < 60.0:
        asked += [now] * len(peers.due(now))
        now = peers.next_due
    pauses = [after - before for before, after in pairwise(asked)]
    assert ASK_S * 0.8 <= pauses[0] <= ASK_S * 1.2 and ASK_S_MAX * 0.8 <= pauses[-1] <= ASK_S_MAX * 1.2
    assert 15 <= len(asked) <= 30


def test_an_address_that_somebody_told_of_is_asked_half_a_dozen_times() -> None:
    peers = some_peers()
    peers.ask(0.0, "x", NEWCOMER_S)
    asked, now = 0, 0.0
    while now < 60.0:
        asked += len(peers.due(now))
        now = max(peers.next_due, now + 0.01)
    assert 4 <= asked <= 8
    assert not peers.asked


def test_whoever_fell_silent_is_asked_for_a_while_and_whoever_left_is_not() -> None:
    peers = some_peers()
    meet(peers, "a", 1)
    meet(peers, "b", 2)
    assert peers.silent(5.0, 4.0) == ["a", "b"]
    peers.forget(5.0, "a", FORMER_S)
    peers.forget(5.0, "b")
    assert list(peers.asked) == ["a"]
    peers.due(5.0 + FORMER_S + 1)
    assert not peers.asked


def test_a_seed_that_left_is_asked_again() -> None:
    peers = some_peers("a")
    ((_, number),) = peers.due(0.0)
    assert peers.confirm(0.0, "a", number, 1, ())
    peers.forget(1.0, "a")
    assert peers.asked["a"].until == math.inf


def test_one_that_was_heard_of_before_it_became_a_seed_is_asked_for_ever() -> None:
    peers = some_peers()
    peers.ask(0.0, "a", NEWCOMER_S)
    peers.use_seeds(1.0, ["a"])
    peers.due(100.0)
    peers.check_invariants()
    assert list(peers.asked) == ["a"]
    peers.use_seeds(101.0, ["b"])
    assert list(peers.asked) == ["b"]


def test_our_own_address_among_the_seeds_is_found_out_and_asked_no_more() -> None:
    peers = some_peers("us", "a")
    asked = dict(peers.due(0.0))
    assert not peers.is_ourselves("us", asked["a"])
    assert not peers.is_ourselves("b", asked["us"]), "only from where it was asked"
    assert peers.is_ourselves("us", asked["us"])
    peers.use_seeds(1.0, ["us", "a"])
    assert peers.ask(1.0, "us", NEWCOMER_S) is None
    assert list(peers.asked) == ["a"]
    peers.check_invariants()


def test_one_with_two_addresses_is_known_at_one_of_them() -> None:
    peers = some_peers()
    assert meet(peers, "a", 1)
    assert not meet(peers, "a2", 1)
    assert peers.audience(1) == ("a",)


def test_an_audience_is_those_who_listen_now() -> None:
    peers = some_peers()
    meet(peers, "a", 1, (1, 2))
    meet(peers, "b", 2, (2,))
    assert (peers.audience(1), peers.audience(2), peers.audience(3)) == (("a",), ("a", "b"), ())
    peers.hear(1.0, peers.known["b"], (1,))
    assert (peers.audience(1), peers.audience(2)) == (("a", "b"), ("a",))
    peers.hear(1.0, peers.known["b"], ())
    assert peers.audience(1) == ("a", "b"), "nobody listens to nothing: it did not say"
    peers.forget(1.0, "a")
    assert peers.audience(1) == ("b",)
    meet(peers, "c", 3, (1,))
    assert peers.audience(1) == ("b", "c")


def test_all_are_told_of_in_turn() -> None:
    peers = some_peers()
    for number in range(60):
        meet(peers, f"p{number}", number + 1)
    told = [peers.some() for _ in range(3)]
    assert all(len(some) == limits.PEERS_TOLD_MAX for some in told)
    assert {address for some in told for address in some} == set(peers.known)


def test_what_a_stranger_makes_us_ask_has_a_bound_and_drives_out_no_seed() -> None:
    peers = some_peers("seed")
    for number in range(3 * limits.PEERS_ASKED_MAX):
        peers.ask(0.0, f"x{number}", NEWCOMER_S)
    peers.check_invariants()
    assert len(peers.asked) == limits.PEERS_ASKED_MAX
    assert "seed" in peers.asked and f"x{3 * limits.PEERS_ASKED_MAX - 1}" in peers.asked


def test_there_is_a_bound_to_who_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PEERS_MAX", 3)
    peers = some_peers()
    assert [meet(peers, f"p{number}", number + 1) for number in range(5)] == [True] * 3 + [False] * 2


def test_a_nap_is_forgiven() -> None:
    peers = some_peers()
    meet(peers, "a", 1)
    peers.forgive(10.0)
    assert not peers.silent(12.0, 4.0)
