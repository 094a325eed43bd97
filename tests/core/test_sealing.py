"""A machine on a sealed bus: who is let in, and who is not. Two or three of them on a wire of which we hold the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq import limits
from rvq.core.machine import Address, Cut, Datagram, Departs, Fan, Route, Wall
from rvq.core.sealers import AGAIN_S, SILENT_S
from rvq.core.sealing import WORDS_S, SealingMachine
from rvq.core.stats import Stats
from rvq.wire.codec import encode_control
from rvq.wire.frames import Alive, SenderAlive, Version, label_tag
from rvq.wire.keys import Key, Keys
from rvq.wire.seal import OVERHEAD, Channel, Sealer, SealKind, cipher_for, is_sealed, read_header, unseal

OLD, NEW, FOREIGN = Key(bytes(32)), Key(bytes(range(32))), Key(b"f" * 32)
TAG = label_tag("work")


def heartbeat(counter: int) -> bytes:
    return encode_control(Alive(7, "work", "default", 1, counter, False, False, 0, Version(0, 0), (), ()), TAG)


PLAIN = heartbeat(1)


class Inside:
    """A machine that notes what it is told, and says what it is to say."""

    def __init__(self) -> None:
        self.wall = Wall(0.0)
        self.told: list[tuple[bytes, Address, int]] = []
        self.to_say: list[Datagram] = []

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        self.told.append((datagram, source, size))

    def take_outgoing(self) -> list[Datagram]:
        said, self.to_say = self.to_say, []
        return said

    def wake(self, now: float) -> None: ...
    def next_deadline(self) -> float:
        return 5.0

    def check_invariants(self) -> None: ...


class End:
    """One end of the wire."""

    def __init__(self, wire: Wire, name: str, keys: Keys) -> None:
        self.name, self.wire = name, wire
        self.inside = Inside()
        self.stats, self.events = Stats(), list[str]()
        self.sealing = SealingMachine(
            self.inside,
            keys,
            bus=b"bus",
            random=Random(name),
            now=wire.now,
            stats=self.stats,
            events=self.events,
        )

    @property
    def told(self) -> list[bytes]:
        return [datagram for datagram, _, _ in self.inside.told]

    def hears(self, datagram: bytes, source: str, size: int = 0) -> None:
        self.sealing.receive(self.wire.now, datagram, source, size)
        self.sealing.check_invariants()

    def say(self, *frames: bytes, to: object = Route.CONTROL) -> list[bytes]:
        """Sealed, but not sent."""
        self.sealing.wake(self.wire.now)
        self.inside.to_say = [(to, frame) for frame in frames]
        return [datagram for _, datagram in self.sealing.take_outgoing()]


class Wire:
    """Carries what is said at once, and keeps a recording."""

    def __init__(self) -> None:
        self.now = 100.0
        self.ends: dict[str, End] = {}
        self.recorded: list[tuple[str, str, bytes]] = []

    def end(self, name: str, *keys: Key) -> End:
        self.ends[name] = End(self, name, Keys(keys or (OLD,)))
        return self.ends[name]

    def say(self, name: str, frame: bytes, to: object = Route.CONTROL) -> None:
        self.ends[name].sealing.wake(self.now)
        self.ends[name].inside.to_say.append((to, frame))
        self.settle()

    def settle(self) -> None:
        for _ in range(20):
            carried = [self._carry(end) for end in list(self.ends.values())]
            if not any(carried):
                return
        raise AssertionError("they never come to an end")

    def _carry(self, end: End) -> bool:
        outgoing = end.sealing.take_outgoing()
        for target, datagram in outgoing:
            names = [target] if isinstance(target, str) else [name for name in self.ends if name != end.name]
            for name in names:
                self.recorded.append((end.name, name, datagram))
                if name in self.ends:
                    self.ends[name].hears(datagram, end.name)
        return bool(outgoing)

    def kinds(self) -> list[SealKind]:
        return [SealKind(read_header(datagram).kind) for _, _, datagram in self.recorded]


@pytest.fixture
def wire() -> Wire:
    return Wire()


def pair(wire: Wire) -> tuple[End, End]:
    """Two that know each other."""
    a, b = wire.end("a"), wire.end("b")
    wire.say("a", heartbeat(1))
    a.inside.told.clear()
    b.inside.told.clear()
    wire.recorded.clear()
    return a, b


# --- first contact ------------------------------------------------------------------------------------------------


def test_three_datagrams_after_the_first_word_both_know_each_other_and_nothing_has_to_be_waited_for(wire: Wire) -> None:
    a, b = wire.end("a"), wire.end("b")
    wire.say("a", heartbeat(1))
    frame, challenge, answer, answer_back, again = wire.recorded[:5]
    assert wire.kinds() == [SealKind.FRAME, SealKind.CHALLENGE, SealKind.ANSWER, SealKind.ANSWER, SealKind.FRAME]
    assert [step[:2] for step in (frame, challenge, answer, answer_back, again)] == [
        ("a", "b"), ("b", "a"), ("a", "b"), ("b", "a"), ("a", "b"),
    ]  # fmt: skip
    assert b.told == [heartbeat(1)], "what it did not dare to take is said once more"
    wire.say("b", heartbeat(2))
    assert a.told == [heartbeat(2)]
    assert (a.stats, b.stats) == (Stats(), Stats())


def test_what_was_sealed_before_the_answer_is_never_let_in(wire: Wire) -> None:
    a, b = wire.end("a"), wire.end("b")
    early = a.say(heartbeat(1), heartbeat(2))
    wire.now += 2 * WORDS_S
    wire.say("a", heartbeat(3))
    assert heartbeat(3) in b.told
    before = len(b.told)
    for datagram in early:
        b.hears(datagram, "a")
    assert len(b.told) == before and b.stats.replayed == 2


def test_words_that_are_old_are_not_said_again(wire: Wire) -> None:
    a = wire.end("a")
    a.say(heartbeat(1))
    wire.now += 2 * WORDS_S
    b = wire.end("b")
    wire.say("b", heartbeat(9))
    wire.settle()
    assert b.told == [] and a.told == [heartbeat(9)]


def test_only_the_newest_of_each_kind_is_said_again(wire: Wire) -> None:
    a = wire.end("a")
    alive = encode_control(SenderAlive(5, "work", 1, True, 0, 0, 0, 0, (), ()), TAG)
    a.say(heartbeat(1), alive, heartbeat(2))
    b = wire.end("b")
    wire.say("b", heartbeat(9))
    assert b.told == [alive, heartbeat(2)]


def test_a_lost_challenge_or_answer_is_made_good_by_the_next_word(wire: Wire) -> None:
    a, b = wire.end("a"), wire.end("b")
    for datagram in a.say(heartbeat(1)):
        b.hears(datagram, "a")
    b.say()  # the challenge is lost
    for datagram in a.say(heartbeat(2)):
        b.hears(datagram, "a")
    assert b.say() == [], "not asked twice at once"
    wire.now += 2 * AGAIN_S
    wire.say("a", heartbeat(3))
    assert heartbeat(3) in b.told


def test_a_dead_ones_words_bring_it_back_for_nobody_who_comes_later(wire: Wire) -> None:
    a, _b = pair(wire)
    wire.say("a", heartbeat(2))
    del wire.ends["a"]
    c = wire.end("c")
    wire.now += 60.0
    for _ in range(50):
        wire.now += 0.2
        for _, _, datagram in list(wire.recorded):
            c.hears(datagram, "a")
        wire.settle()
    assert c.told == [] and not c.sealing._sealers.known
    assert a.told == []


def test_a_recorded_answer_proves_nothing(wire: Wire) -> None:
    wire.end("a"), wire.end("b")
    wire.say("a", heartbeat(1))
    recorded = list(wire.recorded)
    del wire.ends["a"], wire.ends["b"]
    c = wire.end("c")
    for source, _, datagram in recorded * 3:
        c.hears(datagram, source)
    assert c.told == [] and not c.sealing._sealers.known


def test_whoever_is_here_cannot_be_heard_from_elsewhere(wire: Wire) -> None:
    a, b = pair(wire)
    (datagram,) = a.say(heartbeat(2))
    b.hears(datagram, "mallory")
    assert b.told == [] and b.say() == [] and b.stats.replayed == 1
    b.hears(datagram, "a")
    assert b.told == [heartbeat(2)], "and its number is not taken by that"


def test_one_that_was_silent_has_to_show_that_it_is_here(wire: Wire) -> None:
    a, b = pair(wire)
    (held_back,) = a.say(heartbeat(2))
    wire.now += SILENT_S + 1
    b.hears(held_back, "a")
    assert b.told == []
    wire.settle()
    assert b.told == [], "its words are old"
    wire.say("a", heartbeat(3))
    assert b.told == [heartbeat(3)]


# --- replay and forging -------------------------------------------------------------------------------------------


def test_each_datagram_is_let_in_once(wire: Wire) -> None:
    a, b = pair(wire)
    sealed = a.say(*(heartbeat(n) for n in range(2, 10)))
    for datagram in sealed * 3:
        b.hears(datagram, "a")
    assert b.told == [heartbeat(n) for n in range(2, 10)] and b.stats.replayed == 16


def test_frames_of_one_channel_may_overtake_each_other(wire: Wire) -> None:
    a, b = pair(wire)
    sealed = a.say(*(heartbeat(n) for n in range(2, 200)))
    for datagram in reversed(sealed):
        b.hears(datagram, "a")
    assert len(b.told) == 198 and b.stats.replayed == 0


def test_a_datagram_of_which_any_byte_is_another_is_dropped_and_takes_no_number(wire: Wire) -> None:
    a, b = pair(wire)
    (datagram,) = a.say(heartbeat(2))
    for place in range(len(datagram)):
        bent = bytearray(datagram)
        bent[place] ^= 1
        b.hears(bytes(bent), "a")
    for length in range(len(datagram)):
        b.hears(datagram[:length], "a")
    assert b.told == []
    b.hears(datagram, "a")
    assert b.told == [heartbeat(2)]


_worn: list[tuple[End, End, Wire]] = []


@settings(max_examples=300)
@given(st.binary(max_size=120), st.integers(0, 3), st.sampled_from(["a", "b", "x"]), st.integers(0, 50))
def test_no_bytes_raise_or_get_in(data: bytes, start: int, source: str, size: int) -> None:
    if not _worn:
        wire = Wire()
        _worn.append((*pair(wire), wire))
    a, b, wire = _worn[0]
    (real,) = a.say(heartbeat(2))
    head = (b"", real[:4], real[:32], real[:40])[start]
    b.hears(head + data, source, size)
    assert b.told == []


def test_a_frame_carried_over_to_another_channel_kind_or_bus_is_nothing(wire: Wire) -> None:
    _, b = pair(wire)
    other_bus = Sealer(OLD, wire.ends["a"].sealing._sealer.salt, b"another bus", counter=500)
    b.hears(other_bus.seal(Channel.CONTROL, PLAIN), "a")
    assert b.told == [] and b.stats.bad_frames == 1


def test_our_own_words_that_come_back_are_nothing(wire: Wire) -> None:
    a, _ = pair(wire)
    for datagram in a.say(heartbeat(2)):
        a.hears(datagram, "a")
        a.hears(datagram, "mallory")
    assert a.told == [] and a.stats == Stats() and a.say() == []


# --- strangers ----------------------------------------------------------------------------------------------------


def test_plain_frames_and_those_of_another_key_are_counted_said_once_and_never_let_in(wire: Wire) -> None:
    _, b = pair(wire)
    foreign = Sealer(FOREIGN, b"s" * 16, b"bus")
    for _ in range(5):
        b.hears(PLAIN, "plain")
        b.hears(foreign.seal(Channel.CONTROL, PLAIN), "foreign")
    assert b.told == [] and b.stats.strangers == 10 and b.say() == []
    plain, other = b.events
    assert plain.startswith("stranger at plain: its frames are not sealed")
    assert other.startswith("stranger at foreign: ") and FOREIGN.name in other


def test_a_million_salts_cost_no_memory_and_little_crypto(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = pair(wire)
    derived = 0

    def counting(make: Callable[..., object]) -> Callable[..., object]:
        def made(*args: object) -> object:
            nonlocal derived
            derived += 1
            return make(*args)

        return made

    monkeypatch.setattr("rvq.core.sealers.cipher_for", counting(cipher_for))
    head = a.say(heartbeat(2))[0]
    random = Random(1)
    began = time.process_time()
    count, seconds = 1_000_000, 20.0
    for number in range(count):
        forged = head[:12] + random.randbytes(16) + head[28:]
        b.sealing.receive(wire.now + number * seconds / count, forged, "flooder")
    spent = time.process_time() - began
    assert derived <= limits.UNKNOWN_SALTS_BURST + limits.UNKNOWN_SALTS_PER_S * seconds + 1
    sealers = b.sealing._sealers
    assert len(sealers.known) == 1 and len(sealers.asked) == 0 and b.told == []
    assert spent < 60.0  # microseconds each, and not the many that a key takes


def test_true_recordings_of_many_starts_are_challenged_within_bounds(wire: Wire) -> None:
    _, b = pair(wire)
    for number in range(3000):
        sealer = Sealer(OLD, number.to_bytes(16, "big"), b"bus")
        b.sealing.receive(wire.now, sealer.seal(Channel.CONTROL, PLAIN), f"x{number}")
    assert len(b.sealing._sealers.asked) <= limits.CHALLENGES_MAX and len(b.sealing._sealers.known) == 1
    assert b.told == []


def test_an_unknown_one_is_answered_with_little_more_than_it_said(wire: Wire) -> None:
    """Addresses can be forged: nobody is to be flooded with our answers."""
    b = wire.end("b")
    b.say(heartbeat(1))
    recording = Sealer(OLD, b"s" * 16, b"bus").seal(Channel.UNICAST, bytes(16), SealKind.CHALLENGE)
    b.hears(recording, "victim")
    (answer,) = b.say()
    assert len(answer) <= 1.4 * len(recording)


# --- trains, channels and keys ------------------------------------------------------------------------------------


def test_a_train_is_opened_frame_by_frame_and_handed_on_as_a_train(wire: Wire) -> None:
    a, b = pair(wire)
    train = bytes(range(200)) + bytes(30)
    a.inside.to_say = [(Cut(50), train)]
    ((target, sealed),) = a.sealing.take_outgoing()
    assert target == Cut(50 + OVERHEAD)
    b.hears(sealed, "a", 50 + OVERHEAD)
    assert b.inside.told == [(train, "a", 50)]
    b.hears(sealed, "a", 50 + OVERHEAD)
    assert len(b.told) == 1 and b.stats.replayed == 5


def test_of_a_train_the_good_frames_are_handed_on_alone(wire: Wire) -> None:
    a, b = pair(wire)
    a.inside.to_say = [(Cut(50), bytes(50) + b"x" * 50 + b"y" * 50)]
    ((_, sealed),) = a.sealing.take_outgoing()
    bent = bytearray(sealed)
    bent[-1] ^= 1
    b.hears(bytes(bent), "a", 50 + OVERHEAD)
    assert b.inside.told == [(bytes(50), "a", 0), (b"x" * 50, "a", 0)] and b.stats.bad_frames == 1


@pytest.mark.parametrize(
    ("target", "channel"),
    [
        (Route.DATA, Channel.DATA),
        (Route.CONTROL, Channel.CONTROL),
        ("b", Channel.UNICAST),
        (("10.0.0.1", 7), Channel.UNICAST),
        (frozenset({"b", "c"}), Channel.UNICAST),
    ],
    ids=["data", "control", "name", "place", "set"],
)
def test_each_way_is_a_channel_and_what_is_not_known_is_unicast(wire: Wire, target: object, channel: Channel) -> None:
    a, _ = pair(wire)
    a.inside.to_say = [(target, PLAIN)]  # type: ignore[list-item]
    ((sent_to, datagram),) = a.sealing.take_outgoing()
    assert sent_to == target and read_header(datagram).channel == channel


def test_a_channel_that_is_far_ahead_makes_nothing_of_another_too_old(wire: Wire) -> None:
    a, b = pair(wire)
    (slow,) = a.say(PLAIN, to=Route.CONTROL)
    for datagram in a.say(*[heartbeat(2)] * 6000, to=Route.DATA):
        b.sealing.receive(wire.now, datagram, "a")
    b.hears(slow, "a")
    assert b.told[-1] == PLAIN and len(b.told) == 6001


def test_a_bus_is_rekeyed_without_a_frame_lost(wire: Wire) -> None:
    ends = pair(wire)
    count = 1

    def talk() -> None:
        nonlocal count
        for end in ends:
            count += 1
            wire.say(end.name, heartbeat(count))
            (other,) = set(ends) - {end}
            assert other.told[-1] == heartbeat(count)

    steps = [Keys([OLD, NEW]), Keys([OLD, NEW], NEW), Keys([NEW])]
    talk()
    for keys in steps:
        for end in ends:
            end.sealing.use_keys(keys)
            talk()
    talk()
    assert all(kind is SealKind.FRAME for kind in wire.kinds()), "and nobody has to show again who he is"
    assert all(end.stats == Stats() for end in ends)
    assert len(ends[0].events) == 3 and NEW.name in ends[0].events[-1]


def test_a_dropped_key_opens_nothing_any_more(wire: Wire) -> None:
    a, b = pair(wire)
    b.sealing.use_keys(Keys([NEW, OLD]))
    wire.say("a", heartbeat(2))
    b.sealing.use_keys(Keys([NEW]))
    wire.say("a", heartbeat(3))
    assert b.told == [heartbeat(2)] and b.stats.strangers == 1
    assert not a.told


def test_recordings_under_a_key_that_comes_back_stay_old(wire: Wire) -> None:
    a, b = pair(wire)
    sealed = a.say(heartbeat(2), heartbeat(3))
    for datagram in sealed:
        b.hears(datagram, "a")
    for keys in (Keys([OLD, NEW], NEW), Keys([NEW]), Keys([NEW, OLD])):
        b.sealing.use_keys(keys)
    for datagram in sealed:
        b.hears(datagram, "a")
    assert len(b.told) == 2 and b.stats.replayed == 2


def test_the_clock_and_the_deadline_are_those_of_the_machine_inside(wire: Wire) -> None:
    a = wire.end("a")
    assert a.sealing.wall is a.inside.wall and a.sealing.next_deadline() == 5.0
    a.sealing.wake(500.0)


def test_what_is_for_many_is_sealed_once_and_a_train_as_a_train() -> None:
    wire = Wire()
    one = wire.end("a")
    frames = [heartbeat(counter) for counter in range(3)]
    size = len(frames[0])
    one.inside.to_say = [
        (Fan(Route.CONTROL, ("b", "c")), PLAIN),
        (Fan(Route.DATA, ("b", "c"), size), b"".join(frames)),
    ]
    (first, word), (second, train) = one.sealing.take_outgoing()
    assert first == Fan(Route.CONTROL, ("b", "c")) and read_header(word).channel == Channel.CONTROL
    assert second == Fan(Route.DATA, ("b", "c"), size + OVERHEAD)
    cut = [train[start : start + size + OVERHEAD] for start in range(0, len(train), size + OVERHEAD)]
    assert [read_header(frame).channel for frame in cut] == [Channel.DATA] * 3
    cipher = cipher_for(OLD, read_header(word).salt, b"bus")
    assert [unseal(cipher, frame) for frame in cut] == frames


def test_a_last_word_is_sealed_too() -> None:
    class Departing(Inside):
        def depart(self) -> None:
            self.to_say.append(("b", PLAIN))

    stats, events = Stats(), list[str]()
    inside = Departing()
    options = {"bus": b"bus", "random": Random(1), "now": 0.0, "stats": stats, "events": events}
    sealing = SealingMachine(inside, Keys([OLD]), **options)  # type: ignore[arg-type]
    sealing.depart()
    ((target, datagram),) = sealing.take_outgoing()
    assert target == "b" and is_sealed(datagram)
    assert isinstance(sealing, Departs)
