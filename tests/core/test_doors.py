"""What each source may say and be sent, known or not."""

from __future__ import annotations

from random import Random

from rvq import limits
from rvq.core.doors import Doors

NOW = 100.0
PER_S = 300.0


def doors() -> Doors:
    return Doors(Random(1), NOW, PER_S)


def test_a_stranger_may_say_so_much_and_the_others_still_as_much() -> None:
    one = doors()
    said = sum(one.admits(NOW, "flooder", 100) for _ in range(50_000))
    assert said == limits.STRANGER_FRAMES_BURST
    assert sum(one.admits(NOW, ("10.0.0.6", port), 100) for port in range(1000)) > 900


def test_all_strangers_together_have_a_bound() -> None:
    one = doors()
    said = sum(one.admits(NOW, ("10.0.0.6", number % 5000), 100) for number in range(50_000))
    assert said == limits.STRANGERS_FRAMES_PER_S


def test_long_frames_count_as_several_and_the_longest_still_gets_in() -> None:
    one = doors()
    assert one.admits(NOW, "newcomer", limits.DATAGRAM_BYTES_MAX)
    assert not one.admits(NOW, "newcomer", limits.DATAGRAM_BYTES_MAX)


def test_those_with_whom_it_works_do_not_wait_behind_strangers() -> None:
    one = doors()
    one.know(NOW, ["member"])
    for number in range(50_000):
        one.admits(NOW, number, 100)
    assert all(one.admits(NOW, "member", 100) for _ in range(int(PER_S)))
    assert one.knows("member") and not one.knows(7) and len(one) == 1


def test_one_of_those_who_has_gone_mad_has_a_bound_too() -> None:
    one = doors()
    one.know(NOW, ["member"])
    assert sum(one.admits(NOW, "member", 100) for _ in range(50_000)) == 2 * PER_S
    one.know(NOW, ["member"])
    assert not one.admits(NOW, "member", 100), "knowing it again gives nothing"


def test_answers_have_a_bound_for_each_and_for_all_strangers() -> None:
    one = doors()
    one.know(NOW, ["member"])
    size = 60_000
    to_one = sum(one.may_send(NOW, "asker", size) for _ in range(5000)) * size
    assert to_one <= limits.STRANGER_REPAIR_BYTES_BURST
    to_all = sum(one.may_send(NOW, number, size) for number in range(50_000)) * size
    assert to_one + to_all <= limits.STRANGERS_REPAIR_BYTES_PER_S
    to_member = sum(one.may_send(NOW, "member", size) for _ in range(5000)) * size
    assert limits.MEMBER_REPAIR_BYTES_BURST - size < to_member <= limits.MEMBER_REPAIR_BYTES_BURST


def test_looking_at_the_random_takes_nothing_of_it() -> None:
    random = Random(7)
    Doors(random, NOW, PER_S)
    assert random.random() == Random(7).random()
