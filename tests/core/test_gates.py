"""Which keys may go on after a switch."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from rvq.core.gates import ALL, Gates, bits_to_numbers, numbers_to_bits
from rvq.wire.records import SHARDS


@given(st.integers(0, ALL))
def test_shards_come_back_from_the_numbers_of_a_frame(bits: int) -> None:
    numbers = bits_to_numbers(bits)
    assert len(numbers) == SHARDS // 32
    assert all(0 <= number < 1 << 32 for number in numbers)
    assert numbers_to_bits(numbers) == bits


def test_the_lowest_shards_come_first() -> None:
    assert bits_to_numbers(1 << 33 | 1)[:3] == (1, 2, 0)


def test_what_a_stranger_puts_into_the_numbers_names_no_shard_that_does_not_exist() -> None:
    assert numbers_to_bits((2**63 - 1,) * 32) == ALL
    assert numbers_to_bits(()) == 0


# --- at the sender ------------------------------------------------------------------------------------------------


def done_but(*undone: int) -> Callable[[int], bool]:
    return lambda sequence: sequence not in undone


def test_without_anything_undone_every_shard_is_at_the_newest_segment() -> None:
    assert Gates(0).reached([(1, 1), (4, 21)]) == {4: ALL}


def test_a_shard_is_through_with_all_before_the_segment_of_its_first_undone_message() -> None:
    gates = Gates(0)
    gates.close(7, 3)
    gates.close(7, 15)
    gates.close(9, 12)
    segments = [(1, 1), (2, 11), (5, 21)]
    gates.closed_to = 20
    assert gates.reached(segments) == {2: 1 << 9, 5: ALL & ~(1 << 7 | 1 << 9)}, "the oldest segment waits for nothing"
    gates.advance(done_but(12, 15))
    assert gates.reached(segments) == {2: 1 << 7 | 1 << 9, 5: ALL & ~(1 << 7 | 1 << 9)}
    gates.advance(done_but(15))
    assert gates.reached(segments) == {2: 1 << 7, 5: ALL & ~(1 << 7)}
    gates.advance(done_but())
    assert gates.reached(segments) == {5: ALL}
    gates.check_invariants()


def test_what_is_done_behind_something_undone_opens_nothing() -> None:
    gates = Gates(0)
    gates.close(7, 3)
    gates.close(7, 4)
    gates.closed_to = 9
    gates.advance(done_but(3))
    assert gates.reached([(1, 1), (2, 10)]) == {2: ALL & ~(1 << 7)}
    gates.check_invariants()


@given(st.data())
def test_a_shard_is_never_further_than_its_first_undone_message_and_never_behind_its_segment(
    data: st.DataObject,
) -> None:
    """Against a plain list of what is undone."""
    starts = sorted(data.draw(st.sets(st.integers(2, 60), min_size=1, max_size=5)))
    segments = [(stamp, at) for stamp, at in enumerate([1, *starts], 1)]
    shards = data.draw(st.lists(st.integers(0, 3), min_size=starts[-1] - 1, max_size=starts[-1] - 1))
    gates = Gates(0)
    for sequence, shard in enumerate(shards, 1):
        gates.close(shard, sequence)
    gates.closed_to = len(shards)
    undone = data.draw(st.sets(st.integers(1, len(shards))))
    gates.advance(done_but(*undone))
    gates.check_invariants()
    reached = gates.reached(segments)
    for shard in range(4):
        for stamp, at in segments[1:]:
            is_open = any(bits >> shard & 1 for other, bits in reached.items() if other >= stamp)
            assert is_open == all(
                sequence not in undone or sequence >= at for sequence, s in enumerate(shards, 1) if s == shard
            )
