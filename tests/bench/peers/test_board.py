"""Bodies: numbered, of one length or of mixed ones, and the same in every run."""

from __future__ import annotations

from bench.peers.board import NUMBER_BYTES, SENDER_SHIFT, make_bodies


def numbers_of(bodies: list[bytes]) -> list[int]:
    return [int.from_bytes(body[:NUMBER_BYTES], "little") for body in bodies]


def test_bodies_are_numbered_by_sender_and_of_one_length() -> None:
    bodies = make_bodies(2, 3, 100)
    assert numbers_of(bodies) == [(2 << SENDER_SHIFT) + place for place in range(3)]
    assert {len(body) for body in bodies} == {100}


def test_mixed_lengths_spread_evenly_around_their_mean() -> None:
    bodies = make_bodies(0, 10_000, 100, spread=50)
    lengths = [len(body) for body in bodies]
    assert set(lengths) == set(range(50, 151))
    assert abs(sum(lengths) / len(lengths) - 100) < 1
    assert numbers_of(bodies) == list(range(10_000))


def test_mixed_lengths_are_those_of_the_run_before_and_differ_by_sender() -> None:
    assert make_bodies(1, 50, 100, spread=50) == make_bodies(1, 50, 100, spread=50)
    first, second = ([len(body) for body in make_bodies(sender, 50, 100, spread=50)] for sender in (1, 2))
    assert first != second
