"""Who hears whom, how late, and what is lost on the way. Everything happens at numbers, nothing waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.core.machine import Cut, Route
from rvq.sim.clock import Clock
from rvq.sim.network import DATAGRAM_OVERHEAD_BYTES, Endpoint, Fault, Link, Network
from rvq.wire.frames import FrameType

EXACT = Link(delay=0.01, jitter=0.0)


@dataclass
class Lan:
    """A network of three: a sender `s`, and receivers `a` and `b`."""

    link: Link = EXACT
    seed: int = 1
    clock: Clock = field(default_factory=Clock)
    calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.network = Network(self.clock, Random(self.seed), self.link)
        self.ends = {name: self.attach(name, hears_data=name != "s") for name in ("s", "a", "b")}

    def attach(self, name: str, label: str = "work", *, hears_data: bool = True, buffer_bytes: int = 10**6) -> Endpoint:
        return self.network.attach(
            name, label, hears_data=hears_data, notify=lambda: self.calls.append(name), buffer_bytes=buffer_bytes
        )

    def say(self, source: str, *datagrams: bytes, to: Route | Cut | str = Route.DATA) -> None:
        self.network.send(source, [(to, datagram) for datagram in datagrams])

    def heard(self, name: str, after: float = 1.0) -> list[bytes]:
        """What has arrived there that many seconds later."""
        self.clock.run(self.clock.now + after)
        return [datagram for _, datagram, _ in self.ends[name].read()]


@pytest.fixture
def lan() -> Lan:
    return Lan()


# --- who hears ----------------------------------------------------------------------------------------------------


def test_data_reaches_the_receivers_and_no_sender(lan: Lan) -> None:
    lan.attach("s2", hears_data=False)
    lan.say("s", b"x")
    lan.clock.run(1.0)
    assert lan.ends["a"].read() == lan.ends["b"].read() == [("s", b"x", 0)]
    assert sorted(lan.calls) == ["a", "b"]


def test_control_reaches_everyone_but_its_sender(lan: Lan) -> None:
    lan.say("a", b"x", to=Route.CONTROL)
    lan.clock.run(1.0)
    assert sorted(lan.calls) == ["b", "s"]


def test_another_label_hears_nothing(lan: Lan) -> None:
    lan.ends["c"] = lan.attach("c", "other")
    lan.say("s", b"x")
    lan.say("s", b"x", to=Route.CONTROL)
    assert lan.heard("c") == []


def test_an_answer_reaches_the_one_it_is_for(lan: Lan) -> None:
    lan.say("a", b"x", to="s")
    lan.clock.run(1.0)
    assert lan.calls == ["s"]
    assert lan.ends["s"].read() == [("a", b"x", 0)]


def data_frame(letter: bytes, size: int = 60) -> bytes:
    """As long as it looks like a data frame."""
    return b"rvq\x01" + bytes([FrameType.DATA]) + letter * (size - 5)


def test_a_train_comes_as_its_frames_and_some_kernels_join_them_again(lan: Lan) -> None:
    frames = [data_frame(b"1"), data_frame(b"2"), data_frame(b"3"), data_frame(b"4", 20)]
    lan.ends["a"].joins, lan.ends["b"].joins = True, False
    lan.say("s", b"".join(frames), to=Cut(60))
    lan.say("s", data_frame(b"5"))
    lan.clock.run(1.0)
    assert lan.ends["a"].read() == [("s", b"".join(frames), 60), ("s", data_frame(b"5"), 0)]
    assert lan.ends["b"].read() == [("s", one, 0) for one in [*frames, data_frame(b"5")]]


def test_a_frame_of_a_train_is_lost_by_itself() -> None:
    lan = Lan(Link(delay=0.01, jitter=0.0, loss=0.5))
    frames = [data_frame(bytes([number])) for number in range(100)]
    lan.ends["b"].joins = False
    lan.say("s", b"".join(frames), to=Cut(60))
    heard = lan.heard("b")
    assert 20 < len(heard) < 80
    assert set(heard) < set(frames)


def test_a_name_is_given_once(lan: Lan) -> None:
    with pytest.raises(ValueError, match="an endpoint named a already"):
        lan.attach("a")


def test_one_who_is_gone_hears_nothing_not_even_what_was_on_its_way(lan: Lan) -> None:
    lan.say("s", b"on its way")
    lan.network.detach("a")
    lan.say("s", b"later")
    lan.say("s", b"answer", to="a")
    assert lan.heard("a") == []
    assert lan.heard("b") == [b"on its way", b"later"]
    lan.network.detach("a")  # twice is fine


def test_a_name_is_free_again_after_its_owner_went(lan: Lan) -> None:
    lan.network.detach("a")
    lan.ends["a"] = lan.attach("a")
    lan.say("s", b"x")
    assert lan.heard("a") == [b"x"]


# --- how late -----------------------------------------------------------------------------------------------------


def test_a_datagram_arrives_after_the_delay(lan: Lan) -> None:
    lan.say("s", b"x")
    assert lan.heard("a", after=0.0099) == []
    assert lan.heard("a", after=0.0002) == [b"x"]


@given(st.integers(0, 10**6), st.lists(st.floats(0.0, 0.01), min_size=1, max_size=20))
@settings(deadline=None)
def test_a_link_keeps_the_order_however_it_jitters(seed: int, pauses: list[float]) -> None:
    lan = Lan(Link(delay=0.001, jitter=0.05), seed)
    for n, pause in enumerate(pauses):
        lan.say("s", bytes([n]))
        lan.clock.run(lan.clock.now + pause)
    assert lan.heard("a", after=100.0) == [bytes([n]) for n in range(len(pauses))]


def test_a_buffer_that_is_full_loses_what_comes(lan: Lan) -> None:
    room = 3 * (DATAGRAM_OVERHEAD_BYTES + 10)
    lan.ends["c"] = lan.attach("c", buffer_bytes=room)
    lan.say("s", *[bytes([n]) * 10 for n in range(5)])
    assert [d[0] for d in lan.heard("c")] == [0, 1, 2]
    assert lan.ends["c"].overflowed == 2
    lan.say("s", b"again")
    assert lan.heard("c") == [b"again"], "reading makes room"


def test_how_much_waits_in_a_buffer_is_known(lan: Lan) -> None:
    lan.say("s", b"x", b"y")
    lan.clock.run(1.0)
    assert len(lan.ends["a"]) == 2
    lan.ends["a"].read()
    assert len(lan.ends["a"]) == 0


# --- faults -------------------------------------------------------------------------------------------------------


def test_a_lossy_link_loses_about_as_much_as_asked() -> None:
    lan = Lan(Link(delay=0.01, jitter=0.0, loss=0.3))
    lan.say("s", *[b"x"] * 1000)
    assert 600 < len(lan.heard("a")) < 800
    assert lan.network.sent == 1000


def test_what_is_lost_on_the_way_is_counted() -> None:
    lan = Lan(Link(delay=0.01, jitter=0.0, loss=0.5))
    lan.say("s", *[b"x"] * 100, to="a")
    assert lan.network.lost == 100 - len(lan.heard("a")) > 0


def test_a_duplicate_arrives_twice_the_second_time_late() -> None:
    lan = Lan(Link(delay=0.01, jitter=0.0, duplicate=1.0, late=0.05))
    lan.say("s", b"x", to="a")
    assert lan.heard("a", after=0.061) == [b"x", b"x"]


def test_a_reordered_datagram_arrives_once_and_may_come_after_later_ones() -> None:
    lan = Lan(Link(delay=0.01, jitter=0.0, reorder=0.5, late=0.05))
    sent = [bytes([n]) for n in range(50)]
    lan.say("s", *sent, to="a")
    heard = lan.heard("a")
    assert heard != sent
    assert sorted(heard) == sent


def test_a_link_of_its_own_is_for_that_pair_and_way_only(lan: Lan) -> None:
    lan.network.set_link(["s"], ["a"], Link(delay=0.5, jitter=0.0))
    lan.say("s", b"x")
    assert (lan.heard("b", after=0.02), lan.heard("a", after=0.0)) == ([b"x"], [])
    lan.say("a", b"y", to="s")
    assert lan.heard("s", after=0.02) == [b"y"]
    assert lan.heard("a") == [b"x"]


def test_a_cut_is_one_way(lan: Lan) -> None:
    lan.network.cut(["s"], ["a"])
    lan.say("s", b"x")
    lan.say("a", b"y", to="s")
    assert (lan.heard("a"), lan.heard("b"), lan.heard("s")) == ([], [b"x"], [b"y"])
    assert lan.network.lost == 1


def test_what_is_on_its_way_when_a_link_is_cut_still_arrives(lan: Lan) -> None:
    lan.say("s", b"x")
    lan.network.cut(["s"], ["a"])
    assert lan.heard("a") == [b"x"]


def test_when_a_cut_ends_the_link_is_as_before(lan: Lan) -> None:
    fault = lan.network.cut(["s"], ["a"])
    lan.say("s", b"lost")
    fault.end()
    lan.say("s", b"x")
    assert lan.heard("a") == [b"x"]


def test_a_link_that_is_cut_twice_opens_when_both_cuts_end(lan: Lan) -> None:
    first, second = lan.network.cut(["s"], ["a"]), lan.network.cut(["s"], ["a", "b"])
    first.end()
    first.end()  # twice is fine, and counts once
    lan.say("s", b"x")
    assert lan.heard("a") == []
    second.end()
    lan.say("s", b"y")
    assert lan.heard("a") == [b"y"]


def test_a_partition_cuts_both_ways_and_not_within_a_side(lan: Lan) -> None:
    fault = lan.network.partition(["s", "a"], ["b"])
    lan.say("s", b"1", to=Route.CONTROL)
    lan.say("b", b"2", to=Route.CONTROL)
    assert (lan.heard("a"), lan.heard("b"), lan.heard("s")) == ([b"1"], [], [])
    fault.end()
    lan.say("b", b"3", to=Route.CONTROL)
    assert lan.heard("a") == lan.heard("s") == [b"3"]


def test_a_partition_of_three_leaves_everyone_alone(lan: Lan) -> None:
    lan.network.partition(["s"], ["a"], ["b"])
    for name in "sab":
        lan.say(name, b"x", to=Route.CONTROL)
    assert [lan.heard(name) for name in "sab"] == [[], [], []]


@pytest.mark.parametrize("link", [EXACT, Link(delay=0.01, jitter=0.0, duplicate=1.0), Link(0.01, 0.0, reorder=1.0)])
def test_what_a_clog_holds_arrives_all_at_once_when_it_ends(link: Link) -> None:
    lan = Lan(link)
    fault = lan.network.clog(["s"], ["a"])
    lan.say("s", b"1", to="a")
    lan.clock.run(3.0)
    lan.say("s", b"2", to="a")
    assert lan.heard("a") == [], "nothing gets past a clog, not even late"
    fault.end()
    assert lan.heard("a", after=0.0) == [b"1", b"2"]


def test_what_follows_a_clog_comes_after_what_it_held(lan: Lan) -> None:
    fault = lan.network.clog(["s"], ["a"])
    lan.say("s", b"1", to="a")
    fault.end()
    lan.say("s", b"2", to="a")
    assert lan.heard("a") == [b"1", b"2"]


def test_a_link_that_is_clogged_twice_flows_when_both_end(lan: Lan) -> None:
    first, second = (lan.network.clog(["s"], ["a"]) for _ in range(2))
    lan.say("s", b"1", to="a")
    first.end()
    assert lan.heard("a") == []
    second.end()
    assert lan.heard("a") == [b"1"]


@pytest.mark.parametrize(
    "begin",
    [
        lambda network: network.cut(["s"], ["a"]),
        lambda network: network.clog(["s"], ["a"]),
        lambda network: network.partition(["s"], ["a"], ["b"]),
        lambda network: network.set_link(["s"], ["a"], Link(loss=1.0)),
        lambda network: setattr(network, "link", Link(loss=1.0)),
    ],
    ids=["cut", "clog", "partition", "set_link", "link"],
)
def test_healing_ends_every_fault(lan: Lan, begin: Callable[[Network], object]) -> None:
    begin(lan.network)
    lan.say("s", b"1")
    assert lan.heard("a") == []
    lan.network.heal()
    lan.say("s", b"2")
    assert lan.heard("a")[-1] == b"2"


def test_a_fault_knows_whether_it_is_over(lan: Lan) -> None:
    undone: list[object] = []
    fault = Fault([("s", "a")], undone.append)
    assert not fault.over
    fault.end()
    fault.end()
    assert fault.over
    assert undone == [[("s", "a")]]


def test_the_same_seed_gives_the_same_network_again() -> None:
    def once(seed: int) -> list[bytes]:
        lan = Lan(Link(loss=0.2, duplicate=0.2, reorder=0.2), seed)
        lan.say("s", *[bytes([n]) for n in range(100)])
        return lan.heard("a")

    assert once(7) == once(7)
    assert once(7) != once(8)


# --- frames of some types only ------------------------------------------------------------------------------------


def frame(kind: int) -> bytes:
    return bytes([0, 0, 0, 0, kind])


def test_a_sieve_keeps_back_frames_of_its_types_one_way(lan: Lan) -> None:
    fault = lan.network.sieve(["s"], ["a"], [1, 17])
    lan.say("s", frame(1), frame(2), frame(17))
    assert lan.heard("a") == [frame(2)]
    assert lan.heard("b") == [frame(1), frame(2), frame(17)]
    lan.say("a", frame(1), to="s")
    assert lan.heard("s") == [frame(1)]
    fault.end()
    lan.say("s", frame(1))
    assert lan.heard("a") == [frame(1)]


def test_sieves_add_up_and_heal_ends_them(lan: Lan) -> None:
    first = lan.network.sieve(["s"], ["a"], [1])
    lan.network.sieve(["s"], ["a"], [2])
    lan.say("s", frame(1), frame(2))
    assert lan.heard("a") == []
    first.end()
    first.end()
    lan.say("s", frame(1), frame(2))
    assert lan.heard("a") == [frame(1)]
    lan.network.heal()
    lan.say("s", frame(2))
    assert lan.heard("a") == [frame(2)]


def test_a_link_that_loses_everything_is_as_good_as_cut(lan: Lan) -> None:
    lan.network.set_link(["s"], ["a"], Link(loss=1.0, duplicate=1.0))
    lan.say("s", b"x")
    assert lan.heard("a") == [] and lan.heard("b") == [b"x"]
    assert lan.network.lost == 1
