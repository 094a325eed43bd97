"""When a receiver hands over, and to whom."""

from __future__ import annotations

import math
from random import Random

from rvq.core.handover import BEATS, Patience, idle_peer
from rvq.core.membership import Peer
from rvq.wire.frames import NO_VERSION, Member


def peer(id: int, *, load: int = 0, leaving: bool = False) -> Peer:
    return Peer(id, f"at {id}", 1, 1, NO_VERSION, leaving, load, math.inf, {})


def chosen(members: tuple[int, ...], *peers: Peer) -> set[int | None]:
    """Whom it can fall on."""
    known = {peer.id: peer for peer in peers}
    return {idle_peer([Member(id, 1) for id in members], known, Random(seed)) for seed in range(20)}


def test_patience_is_over_when_messages_have_waited_for_so_many_heartbeats() -> None:
    patience = Patience()
    assert [patience.is_over(2) for _ in range(BEATS + 1)] == [False] * (BEATS - 1) + [True, True]


def test_who_gets_round_to_its_messages_has_patience_anew() -> None:
    patience = Patience()
    assert [patience.is_over(unstarted) for unstarted in (9, 9, 1, 9, 9, 0, 9, 9)] == [False] * 8
    assert patience.is_over(9)


def test_after_handing_over_patience_begins_anew() -> None:
    patience = Patience()
    assert [patience.is_over(9) for _ in range(BEATS)][-1]
    patience.renew()
    assert not patience.is_over(9)


def test_one_of_those_who_have_nothing_to_do_is_chosen() -> None:
    assert chosen((6, 7, 8), peer(6), peer(7, load=1), peer(8)) == {6, 8}


def test_nobody_is_chosen_if_all_are_busy() -> None:
    assert chosen((6, 7), peer(6, load=3), peer(7, load=1)) == {None}


def test_one_that_leaves_is_not_chosen_nor_one_that_is_no_member_or_not_heard() -> None:
    assert chosen((6, 7), peer(6, leaving=True), peer(9)) == {None}
