"""An observer: what everyone says in, a picture out; and nothing said, whatever comes."""

from __future__ import annotations

import json
from random import Random

import pytest

from rvq import limits
from rvq.core.machine import Route
from rvq.core.observed.label import GONE_S
from rvq.core.observer import LOOK_S, ObserverMachine
from rvq.timings import Timings
from rvq.wire.codec import encode_control, peek
from rvq.wire.frames import About, FrameType, label_tag
from tests.core.observed.frames import LABEL, an_about, an_alive
from tests.core.test_receiver import LATE, Pump

T = Timings()


def an_observer(*labels: str, now: float = 0.0) -> ObserverMachine:
    return ObserverMachine(labels, timings=T, now=now, wall_offset=1e9, bus={"port": 7400})


def say(observer: ObserverMachine, frame: object, now: float = 0.0, tag: int | None = None) -> None:
    label = getattr(frame, "label", LABEL)
    observer.receive(now, encode_control(frame, label_tag(label) if tag is None else tag), "there")  # type: ignore[arg-type]
    observer.check_invariants()


class Watched(Pump):
    """Real senders and receivers, and an observer who hears what the network would bring it."""

    def __init__(self) -> None:
        super().__init__()
        self.observer = an_observer()

    def look(self) -> dict[str, object]:
        """All that passed since the last look, as if it came now."""
        for source, target, datagram in self.passed:
            known = target is Route.ABOUT or (target is Route.CONTROL and LABEL in self.observer.labels)
            if known:
                self.observer.receive(self.now, datagram, source)
        self.passed.clear()
        self.observer.wake(self.now)
        self.observer.check_invariants()
        return self.observer.snapshot(self.now)


def test_it_counts_as_the_machines_do() -> None:
    pump = Watched()
    sender, one, two = pump.sender(), pump.receiver(5), pump.receiver(6)
    pump.run(LATE)
    pump.look()
    pump.send(sender, *range(10))
    for receiver in (one, two):
        messages = receiver.take(pump.now, 99)
        receiver.acknowledge_all(pump.now, messages)
    pump.run(pump.now + 3.0)
    (label,) = pump.look()["labels"]  # type: ignore[misc]
    rows = label["groups"][0]["receivers"]
    assert [row["acked"] for row in rows] == [one.stats.acked, two.stats.acked] == [5, 5]
    assert [row["index"] for row in rows] == [[0], [1]] and {row["state"] for row in rows} == {"in"}
    (row,) = label["senders"]
    assert (row["inserted"], row["sent"], row["acked"], row["undone"], row["stamp"]) == (10, 10, 10, 0, 1)
    assert pump.observer.snapshot(pump.now)["totals"]["acked"] == 10
    assert pump.observer.is_complete(pump.now)


def test_a_picture_is_plain_data() -> None:
    pump = Watched()
    pump.sender(), pump.receiver(5)
    pump.run(LATE)
    picture = pump.look()
    assert json.loads(json.dumps(picture)) == picture
    assert picture["bus"] == {"port": 7400}
    history = pump.observer.history()
    assert json.loads(json.dumps(history)) == history
    assert set(history) == {"receivers", "senders"} and all(map(len, history.values()))


def test_it_finds_labels_by_themselves_and_forgets_them() -> None:
    observer = an_observer()
    say(observer, an_alive(7, 1))
    assert observer.labels == () and observer.changes == 0, "what nobody introduced is not followed"
    say(observer, an_about(7))
    assert observer.labels == (LABEL,) and observer.follows == 1
    for tenth in range(int(10 * (2 * GONE_S + 5.0))):
        observer.wake(tenth / 10)
    assert observer.labels == () and observer.follows == 2
    assert not observer._by_tag


def test_labels_that_were_named_are_followed_from_the_start_and_no_others() -> None:
    observer = an_observer(LABEL)
    assert observer.labels == (LABEL,)
    say(observer, an_alive(7, 1))
    say(observer, About(8, "other", *_rest(an_about(8))))
    assert observer.labels == (LABEL,)
    assert [row["id"] for row in observer.snapshot(0.0)["labels"][0]["groups"][0]["receivers"]] == [f"{7:016x}"]
    observer.wake(100.0)
    assert observer.labels == (LABEL,), "named ones stay"


def _rest(frame: About) -> list[object]:
    return [getattr(frame, name) for name in list(About.__dataclass_fields__)[2:]]


def test_it_says_nothing_and_wants_to_be_woken_to_look() -> None:
    observer = an_observer()
    say(observer, an_about(7))
    observer.wake(0.0)
    assert observer.take_outgoing() == [] and observer.next_deadline() == LOOK_S


def test_bad_frames_are_counted() -> None:
    observer = an_observer(LABEL)
    good = encode_control(an_about(7), label_tag(LABEL))
    random = Random(1)
    for _ in range(2000):
        bad = bytearray(good)
        bad[random.randrange(len(bad))] = random.randrange(256)
        observer.receive(0.0, bytes(bad[: random.randrange(len(bad) + 1)]), "there")
    observer.check_invariants()
    assert observer.bad_frames > 500


def test_a_label_with_the_tag_of_another_or_that_is_none_is_not_followed() -> None:
    observer = an_observer()
    say(observer, an_about(7), tag=label_tag("other"))
    say(observer, About(8, "a\nb", *_rest(an_about(8))))
    assert observer.labels == () and observer.bad_frames == 2


def test_labels_of_strangers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OBSERVED_LABELS_MAX", 5)
    observer = an_observer()
    for n in range(50):
        say(observer, About(n + 1, f"label-{n}", *_rest(an_about(n + 1))))
    assert len(observer.labels) == 5


def test_frames_with_messages_are_not_for_it() -> None:
    observer = an_observer(LABEL)
    observer.receive(0.0, b"rvq\x01\x01" + bytes(60), "there")
    assert observer.bad_frames == 0 and observer.changes == 0


def test_a_nap_of_its_own_makes_nobody_silent() -> None:
    observer = an_observer()
    say(observer, an_about(7))
    observer.wake(0.1)
    observer.wake(60.0)
    (label,) = observer.snapshot(60.0)["labels"]
    assert [row["state"] for row in label["groups"][0]["receivers"]] == ["in"]


def test_it_waits_for_everyone_to_have_spoken_but_not_for_ever() -> None:
    observer = an_observer(LABEL)
    assert not observer.is_complete(2.0), "somebody may still introduce itself"
    assert observer.is_complete(2.5), "nobody is there"
    say(observer, an_alive(7, 1))
    assert not observer.is_complete(2.5)
    assert observer.is_complete(5.0), "one that never says who it is"


def test_machines_introduce_themselves_to_the_directory_and_nowhere_else() -> None:
    pump = Watched()
    pump.sender(), pump.receiver(5), pump.receiver(6)
    pump.run(60.0)
    abouts = [(source, target) for source, target, d in pump.passed if peek(d)[0] == FrameType.ABOUT]
    assert {target for _, target in abouts} == {Route.ABOUT}
    assert {target for _, target, d in pump.passed if peek(d)[0] != FrameType.ABOUT}.isdisjoint({Route.ABOUT})
    assert 180 <= len(abouts) <= 190, "three ends, one a second"


def test_the_lag_is_the_longest_wait_since_it_was_told_last() -> None:
    pump = Watched()
    sender, receiver = pump.sender(), pump.receiver(5)
    pump.run(LATE)
    pump.send(sender, "a")
    pump.run(pump.now + 3.0)
    receiver.acknowledge_all(pump.now, receiver.take(pump.now, 9))
    pump.passed.clear()
    pump.run(pump.now + 1.5)
    pump.look()
    points = next(iter(pump.observer.history()["receivers"].values()))
    assert [round(point[2]) for point in points[-2:]] in ([3, 0], [3]) or round(points[0][2]) == 3
