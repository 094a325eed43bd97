"""What happened in a world, and what of it is not yet known to its sender."""

from __future__ import annotations

from rvq.sim.history import Done, Finished, History, Started, Submitted

STREAM = 0x51


def history(*events: Submitted | Started | Finished | Done) -> History:
    told = History()
    for event in events:
        told.add(event)
    return told


def finished(sequence: int, *, stream: int = STREAM, group: str = "default") -> Finished:
    return Finished(1.0, "r1", group, stream, sequence)


def done(sequence: int, *, stream: int = STREAM, group: str = "default") -> Done:
    return Done(2.0, stream, group, sequence)


def test_events_are_kept_in_the_order_in_which_they_happened() -> None:
    events = [Submitted(0.0, STREAM, 1, None, "x"), finished(1), done(1)]
    told = history(*events)
    assert list(told) == told.events == events
    assert len(told) == 3


def test_what_is_handled_waits_until_its_sender_knows() -> None:
    told = history(finished(2), finished(1), finished(3))
    assert told.unrecorded(STREAM) == [("default", 2), ("default", 1), ("default", 3)]
    told.add(done(1))
    assert told.unrecorded(STREAM) == [("default", 2), ("default", 3)]


def test_streams_and_groups_wait_for_themselves() -> None:
    told = history(finished(1), finished(1, group="audit"), finished(1, stream=0x52))
    told.add(done(1, group="audit"))
    assert told.unrecorded(STREAM) == [("default", 1)]
    assert told.unrecorded(0x52) == [("default", 1)]
    assert told.unrecorded(0x53) == []


def test_what_is_handled_again_after_it_was_done_waits_for_nobody() -> None:
    assert history(finished(1), done(1), finished(1)).unrecorded(STREAM) == []


def test_what_is_done_before_it_is_seen_handled_waits_for_nobody() -> None:
    assert history(done(1), finished(1)).unrecorded(STREAM) == []


def test_what_is_handled_twice_waits_once() -> None:
    assert history(finished(1), finished(1)).unrecorded(STREAM) == [("default", 1)]


def test_the_digest_tells_histories_apart() -> None:
    assert history(finished(1), done(1)).digest() == history(finished(1), done(1)).digest()
    assert history(finished(1), done(1)).digest() != history(finished(1), done(2)).digest()
    assert history(finished(1), done(1)).digest() != history(done(1), finished(1)).digest()
