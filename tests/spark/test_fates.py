"""What runs of outcomes say is put to each message, whatever the bucket, the stride and the keys."""

from __future__ import annotations

import numpy as np
import pytest

from rvq.spark.fates import Bucket, Fate, Run, Sent, distinct, runs_of
from rvq.spark.segments import GroupSegments, Segment

MAP = tuple(shard % 2 for shard in range(1024))
PLAIN = GroupSegments((Segment(1, 1, 99, (7, 8), ()), Segment(2, 100, float("inf"), (7, 8, 9), ())))
KEYED = GroupSegments((Segment(1, 1, float("inf"), (7, 8), MAP),))


def run(slot: int, first: int, last: int, stamp: int = 1, outcome: str = "acked", receiver: int = 7) -> Run:
    return Run("default", receiver, stamp, slot, first, last, outcome, 2.0)


@pytest.mark.parametrize("size", [7, 64, 1000])
def test_a_run_is_each_message_of_its_lane(size: int) -> None:
    found = []
    for number in range(200 // size + 1):
        bucket = Bucket(number, size)
        for one in (run(1, 11, 31), run(2, 101, 113, stamp=2)):
            found += [place + bucket.base for place in bucket.places(PLAIN, one).tolist()]
    assert sorted(found) == [*range(11, 32, 2), *range(101, 114, 3)]


def test_with_keys_the_shards_say_which() -> None:
    bucket = Bucket(0, 100)
    shards = np.array([4, 5, 6, 0xFFFF, 0xFFFF], "<u2")
    bucket.add(Sent(10, 14, 1, None, shards.tobytes(), 1.0))
    assert bucket.places(KEYED, run(0, 0, 50)).tolist() == [10, 12, 14]
    assert bucket.places(KEYED, run(1, 0, 50)).tolist() == [11, 13]


def test_frames_shares_and_strides_are_recorded_once_in_their_bucket() -> None:
    bucket = Bucket(1, 10)
    bucket.add(Sent(5, 12, 1, None, None, 1.0))
    bucket.add(Sent(11, 19, 4, None, None, 2.0))
    bucket.add(Sent(9, 18, 0, np.array([9, 16, 18], "<i8").tobytes(), None, 3.0))
    assert bucket.recorded.tolist() == [1, 2, 1, 0, 0, 1, 1, 0, 1, 1]
    assert bucket.sent_at[6] == 3.0


def test_who_did_it_first_and_who_again_is_known() -> None:
    bucket = Bucket(0, 100)
    bucket.add(Sent(1, 20, 1, None, None, 1.0))
    fate = Fate(bucket, PLAIN)
    fate.add(run(1, 1, 19))
    fate.add(run(1, 5, 7, receiver=8)._replace(at=9.0))
    fate.add(run(0, 2, 2, outcome="retried"))
    assert runs_of(fate.acked > 1, 0) == [(5, 5), (7, 7)]
    assert fate.acked_at[5] == 2.0
    assert fate.settled[2] == 0
    assert fate.doers(5, 7) == [7, 8]
    assert fate.doers(9, 9) == [7]


def test_a_segment_that_nobody_told_of_says_nothing() -> None:
    assert Bucket(0, 100).places(PLAIN, run(0, 1, 50, stamp=9)).tolist() == []


def test_runs_are_what_stands_together() -> None:
    assert runs_of(np.array([True, False, True, True]), 10) == [(10, 10), (12, 13)]
    assert runs_of(np.zeros(3, bool), 0) == []
    assert distinct([1, 2, 1]) == [1, 2]
