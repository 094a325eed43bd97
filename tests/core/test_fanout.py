"""The machine that finds the others and sends to each: what it says to whom, and what it lets in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import pytest

from rvq import limits
from rvq.core.fanout import ALONE_S, HERE_S, UNASKED_MAX, FanoutMachine, bus_tag, channel_of
from rvq.core.machine import Address, Cut, Datagram, Fan, Route, Target, Wall
from rvq.core.stats import Stats
from rvq.wire.codec import HEADER, MAGIC, decode_control, encode_control
from rvq.wire.frames import FrameType, Goodbye, PeerAddress, Peers, SenderGoodbye, label_tag

WORD = encode_control(SenderGoodbye(5, "work"), label_tag("work"))
ALIVE = HEADER.pack(MAGIC, FrameType.ALIVE, 0, 0, label_tag("work"), 0, 5, 0)


class Inside:
    """A machine that says what it is told to, and remembers what it hears."""

    def __init__(self) -> None:
        self.wall = Wall(0.0)
        self.heard: list[tuple[bytes, Address, int]] = []
        self.says: list[Datagram] = []
        self.deadline = math.inf
        self.woken: list[float] = []

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        self.heard.append((datagram, source, size))

    def wake(self, now: float) -> None:
        self.woken.append(now)
        self.deadline = math.inf

    def next_deadline(self) -> float:
        return self.deadline

    def take_outgoing(self) -> list[Datagram]:
        says, self.says = self.says, []
        return says

    def check_invariants(self) -> None: ...


class Names:
    def spell(self, address: Address) -> PeerAddress:
        return PeerAddress(str(address), 1)

    def read(self, place: PeerAddress) -> Address | None:
        return None if place.host.startswith("far") else place.host


class Lan:
    """Ends by name, and datagrams that arrive at once unless they are caught."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ends: dict[str, FanoutMachine] = {}
        self.inside: dict[str, Inside] = {}
        self.sent: list[tuple[str, Target, bytes]] = []
        self.deaf: set[str] = set()

    def add(
        self,
        name: str,
        *seeds: str,
        label: str = "work",
        routes: Sequence[Route] = (Route.CONTROL, Route.DATA),
        bus: bytes = b"bus",
        joined: Sequence[int] | None = None,
    ) -> FanoutMachine:
        inside = self.inside[name] = Inside()
        end = self.ends[name] = FanoutMachine(
            inside,
            bus=bus,
            label=label,
            joined=[channel_of(label, route) for route in routes] if joined is None else joined,
            seeds=seeds,
            places=Names(),
            random=Random(f"{name} {self.now}"),
            now=self.now,
            stats=Stats(),
            events=[],
        )
        return end

    def carry(self) -> None:
        """Until nobody has anything to say."""
        for _ in range(100):
            flying = [(name, *said) for name, end in self.ends.items() for said in end.take_outgoing()]
            if not flying:
                return
            self.sent += flying
            for source, target, datagram in flying:
                for to in target.addresses if isinstance(target, Fan) else (target,):
                    if to in self.ends and to not in self.deaf and source not in self.deaf:
                        self.ends[str(to)].receive(self.now, datagram, source)
        raise AssertionError("they go on for ever")

    def run(self, until: float) -> None:
        self.carry()
        while (due := min(end.next_deadline() for end in self.ends.values())) <= until:
            self.now = max(due, self.now)
            for end in self.ends.values():
                if end.next_deadline() <= self.now:
                    end.wake(self.now)
                end.check_invariants()
            self.carry()
        self.now = until

    def known(self) -> dict[str, set[Address]]:
        return {name: set(end.peers) for name, end in self.ends.items()}

    def said(self, source: str) -> list[tuple[Target, Peers]]:
        frames = [(target, decode_control(datagram)) for name, target, datagram in self.sent if name == source]
        return [(target, frame) for target, frame in frames if isinstance(frame, Peers)]


def all_know_all(lan: Lan) -> bool:
    return all(known == lan.ends.keys() - {name} for name, known in lan.known().items())


@pytest.mark.parametrize("ends", [2, 5, 40])
def test_those_who_know_one_seed_soon_know_everyone(ends: int) -> None:
    lan = Lan()
    lan.add("seed", "seed")
    for number in range(ends):
        lan.add(f"p{number}", "seed")
    lan.run(0.5 if ends < 40 else 2.0)
    assert all_know_all(lan)


def test_who_comes_later_finds_all_within_milliseconds() -> None:
    lan = Lan()
    for name in ("seed", "a", "b"):
        lan.add(name, "seed")
    lan.run(10.0)
    lan.add("late", "seed")
    lan.run(10.02)
    assert all_know_all(lan)


def test_when_the_only_seed_dies_the_others_go_on_and_a_new_one_is_found() -> None:
    lan = Lan()
    for name in ("seed", "a", "b"):
        lan.add(name, "seed")
    lan.run(2.0)
    lan.deaf.add("seed")
    lan.run(10.0)
    assert lan.known()["a"] == {"b"} and lan.known()["b"] == {"a"}
    assert "no longer hears seed:1" in lan.ends["a"]._events
    lan.deaf.clear()
    lan.add("seed")  # which knows nobody
    lan.run(16.0)
    assert all_know_all(lan)


def test_two_halves_meet_again_without_a_seed() -> None:
    lan = Lan()
    for name in ("seed", "a", "b"):
        lan.add(name, "seed")
    lan.run(2.0)
    lan.deaf |= {"seed", "b"}
    lan.run(30.0)
    assert not lan.known()["a"]
    lan.deaf -= {"b"}
    lan.run(40.0)
    assert lan.known()["a"] == {"b"}


def test_what_is_for_all_goes_to_those_who_listen_and_what_is_for_one_as_it_is() -> None:
    lan = Lan()
    sender = lan.add("s", routes=[Route.CONTROL])
    lan.add("r", "s")
    lan.add("t", "s", routes=[Route.CONTROL])
    lan.add("play", "s", label="play")
    lan.add("o", "s", joined=[channel_of(None, Route.ABOUT), channel_of("play", Route.CONTROL)])
    lan.run(1.0)
    lan.inside["s"].says = [(route, WORD) for route in Route] + [(Cut(len(WORD)), WORD), ("elsewhere", WORD)]
    targets = [target for target, datagram in sender.take_outgoing() if datagram == WORD]
    assert targets == [
        Fan(Route.DATA, ("r",)),
        Fan(Route.CONTROL, ("r", "t")),
        Fan(Route.ABOUT, ("o",)),
        Fan(Route.DATA, ("r",), len(WORD)),
        "elsewhere",
    ]


def test_nothing_but_small_questions_goes_to_an_address_that_has_not_answered() -> None:
    """Somebody says in another's name that he is here: the other gets little, and nothing that is for all."""
    lan = Lan()
    for number in range(4):
        lan.add(f"p{number}", "p0")
    lan.run(2.0)
    lan.sent.clear()
    joined = tuple(channel_of("work", route) for route in Route)
    frame = Peers(99, bus_tag(b"bus"), 1234, 0, False, joined, ())
    asked = encode_control(frame, 0)
    lan.ends["p0"].receive(2.0, asked, "victim")
    lan.inside["p0"].says = [(Route.DATA, WORD)]
    lan.run(20.0)
    got = [
        datagram
        for _, target, datagram in lan.sent
        for to in (target.addresses if isinstance(target, Fan) else (target,))
        if to == "victim"
    ]
    assert 4 <= len(got) <= 8
    assert all(len(datagram) <= len(asked) + 10 for datagram in got)
    assert all(isinstance(decode_control(datagram), Peers) for datagram in got)
    assert "victim" not in lan.ends["p0"].peers


def test_an_end_with_many_channels_says_them_to_those_only_who_have_answered() -> None:
    lan = Lan()
    channels = [channel_of(f"label {number}", Route.CONTROL) for number in range(UNASKED_MAX + 1)]
    lan.add("o", "s", joined=channels)
    lan.add("s", label="label 1")
    lan.run(1.0)
    assert lan.said("o")[0][1].joined == ()
    assert lan.ends["s"].peer("o") is not None
    assert lan.ends["s"].peer("o").joined == set(channels)  # type: ignore[union-attr]


def test_whoever_is_not_known_is_not_heard_and_asked_whether_he_is_there() -> None:
    lan = Lan()
    end = lan.add("a")
    end.receive(0.0, WORD, "x")
    assert not lan.inside["a"].heard and end._stats.strangers == 1
    end.wake(0.0)
    assert [target for target, _ in end.take_outgoing()] == ["x"]
    end.receive(0.0, b"nonsense, and quite a lot of it", "x")
    assert end._stats.bad_frames == 1
    lan.add("b", "a")
    lan.run(0.5)
    end.receive(0.5, WORD, "b")
    assert lan.inside["a"].heard == [(WORD, "b", 0)]


def test_frames_of_another_bus_at_a_known_address_are_not_let_in() -> None:
    """A port has another owner, who is on the bus next door."""
    lan = Lan()
    lan.add("a")
    lan.add("b", "a")
    lan.run(0.5)
    del lan.ends["b"]
    lan.add("b", "a", bus=b"another")
    lan.run(0.6)
    assert lan.known() == {"a": set(), "b": set()}
    lan.ends["a"].receive(0.6, WORD, "b")
    assert not lan.inside["a"].heard


def test_a_new_end_at_a_known_address_has_to_answer_itself() -> None:
    lan = Lan()
    lan.add("a")
    lan.add("b", "a", label="work")
    lan.run(0.5)
    first = lan.ends["a"].peer("b")
    lan.add("b", "a", label="play")
    lan.run(1.0)
    second = lan.ends["a"].peer("b")
    assert first is not None and second is not None and first.id != second.id
    assert channel_of("play", Route.DATA) in second.joined


def test_whoever_says_that_he_goes_is_sent_nothing_more() -> None:
    lan = Lan()
    lan.add("a")
    lan.add("b", "a")
    lan.run(0.5)
    forged = encode_control(Peers(4711, bus_tag(b"bus"), 0, 0, True, (), ()), 0)
    lan.ends["a"].receive(0.5, forged, "b")
    assert "b" in lan.ends["a"].peers, "it was not he who said so"
    lan.ends["b"].depart()
    lan.carry()
    assert lan.known()["a"] == set()


def test_what_was_just_said_to_all_is_said_again_to_one_who_is_new() -> None:
    lan = Lan()
    lan.add("a", "b")
    lan.inside["a"].says = [(Route.CONTROL, ALIVE), (Route.CONTROL, WORD)]
    lan.carry()
    lan.add("b")
    lan.run(0.2)
    assert [datagram for datagram, _, _ in lan.inside["b"].heard] == [ALIVE]
    lan.run(1.0)
    lan.add("late", "a")
    lan.run(3.0)
    assert not lan.inside["late"].heard, "by then it is old"


def test_a_liar_makes_us_ask_so_many_addresses_and_no_more() -> None:
    lan = Lan()
    lan.add("a")
    liar = lan.add("liar", "a")
    lan.run(0.5)
    lan.sent.clear()
    for number in range(100):
        told = tuple(PeerAddress(f"v{number}.{n}", 1) for n in range(limits.PEERS_TOLD_MAX - 1))
        frame = Peers(liar._id, bus_tag(b"bus"), 0, 0, False, (1,), (*told, PeerAddress("far away", 1)))
        lan.ends["a"].receive(0.5, encode_control(frame, 0), "liar")
    asked = set(lan.ends["a"]._peers.asked)
    assert len(asked) == limits.HEARSAY_BURST
    assert "far away" not in asked


def test_two_who_have_no_room_for_each_other_do_not_go_on_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PEERS_MAX", 0)
    lan = Lan()
    lan.add("a", "b")
    lan.add("b", "a")
    lan.run(5.0)  # which fails in `carry` if they do
    assert lan.known() == {"a": set(), "b": set()}


def test_a_train_is_handed_on_whole_and_a_word_among_peers_in_it_is_taken_out() -> None:
    lan = Lan()
    lan.add("a")
    b = lan.add("b", "a")
    lan.run(0.5)
    a = lan.ends["a"]
    a.receive(0.5, WORD + WORD, "b", len(WORD))
    assert lan.inside["a"].heard == [(WORD + WORD, "b", len(WORD))]
    lan.inside["a"].heard.clear()
    here = encode_control(Peers(b._id, bus_tag(b"bus"), 0, 0, True, (), ()), 0)
    long = encode_control(Goodbye(5, "work", "g" * len(here)), 7)
    a.receive(0.5, long + here, "b", len(long))
    assert lan.inside["a"].heard == [(long, "b", 0)]
    assert not a.peers, "the last of the train said that it goes"


def test_silence_counts_only_while_one_is_awake() -> None:
    lan = Lan()
    a = lan.add("a")
    lan.add("b", "a")
    lan.run(1.0)
    a.wake(60.0)
    assert a.peers == ("b",)


def test_one_that_finds_nobody_says_so_once_and_one_that_did_does_not() -> None:
    lan = Lan()
    lan.add("alone", "nobody")
    lan.run(4 * ALONE_S)
    assert [event for event in lan.ends["alone"]._events if "found nobody" in event] == [
        "has found nobody yet: see that peers= names a host where rvq runs, on this port"
    ]
    lan = Lan()
    lan.add("a", "b")
    lan.add("b")
    lan.run(4 * ALONE_S)
    assert lan.ends["a"]._events == ["found b:1"]


def test_the_machine_inside_is_woken_when_it_wants_to_be() -> None:
    lan = Lan()
    a = lan.add("a")
    lan.inside["a"].deadline = 0.7
    lan.run(HERE_S * 3)
    assert lan.inside["a"].woken == [0.7]
    assert a.wall is lan.inside["a"].wall


def test_a_bus_is_known_by_all_of_its_name() -> None:
    assert bus_tag(b"239.192.0.0/16 7400") != bus_tag(b"239.192.0.0/16 7401")
    assert bus_tag(b"239.192.0.0/16 7400") < 2**63
    assert channel_of("work", Route.DATA) != channel_of("work", Route.CONTROL) != channel_of("play", Route.CONTROL)
    assert channel_of("work", Route.ABOUT) == channel_of(None, Route.ABOUT)
