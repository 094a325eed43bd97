"""Chains are cut at block borders, always alike, and what has expired is said."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from rvq.errors import SparkError
from rvq.journal import JournalReader, Position, expire
from rvq.spark.chains import Chains, Slice
from tests.spark.writing import NOW, write_bodies

LABEL, KEY = "work", f"{1:016x}"
BODIES = [b"%0200d" % n for n in range(4000)]


@pytest.fixture
def reader(tmp_path: Path) -> JournalReader:
    write_bodies(tmp_path, BODIES, per_frame=50, segment_bytes=200_000)
    return JournalReader(tmp_path)


def all_of(reader: JournalReader, *, fails: bool = True, start: Position | None = None) -> list[Slice]:
    return Chains(reader, fail_on_data_loss=fails).slices((LABEL, KEY), start, reader.tail(LABEL)[KEY])


def test_slices_are_segments_and_have_all_rows(reader: JournalReader) -> None:
    slices = all_of(reader)
    assert [one.start.segment for one in slices] == [str(name) for name in reader.segments(LABEL)]
    assert len(slices) > 2
    assert sum(one.rows for one in slices) == len(BODIES)


def test_pieces_follow_each_other_at_block_borders(reader: JournalReader) -> None:
    chains = Chains(reader, fail_on_data_loss=True)
    for one in all_of(reader):
        pieces = list(chains.pieces(one, 50_000))
        assert pieces[0].start == one.start and pieces[-1].end == one.end
        assert all(a.end == b.start for a, b in pairwise(pieces))
        assert pieces == list(chains.pieces(one, 50_000))
        rows = sum(len(block.payloads()) * 50 for piece in pieces for block in blocks(reader, piece))
        assert rows == one.rows


def blocks(reader: JournalReader, one: Slice) -> list:  # type: ignore[type-arg]
    return list(reader.blocks(one.label, one.start, one.end))


def test_a_piece_is_never_empty_however_small_it_should_be(reader: JournalReader) -> None:
    one = all_of(reader)[0]
    pieces = list(Chains(reader, fail_on_data_loss=True).pieces(one, 1))
    assert len(pieces) > 3
    assert all(piece.rows for piece in pieces)


def test_what_has_expired_is_an_error_or_left_out(reader: JournalReader, tmp_path: Path) -> None:
    start = all_of(reader)[0].start
    first, *others = reader.segments(LABEL)
    (tmp_path / f"label={LABEL}" / str(first)).unlink()
    with pytest.raises(SparkError, match=r"1 of the segments .* have expired: start at earliest"):
        all_of(reader, start=start)
    left = all_of(reader, start=start, fails=False)
    assert [one.start.segment for one in left] == [str(name) for name in others]


def test_without_a_start_what_is_there_is_all(reader: JournalReader, tmp_path: Path) -> None:
    (tmp_path / f"label={LABEL}" / str(reader.segments(LABEL)[0])).unlink()
    assert len(all_of(reader)) == len(reader.segments(LABEL))


def test_an_offset_beyond_what_is_synced_is_an_error(reader: JournalReader) -> None:
    end = reader.tail(LABEL)[KEY]
    beyond = end._replace(position=end.position + 8)
    with pytest.raises(SparkError, match="before the offset"):
        Chains(reader, fail_on_data_loss=True).slices((LABEL, KEY), None, beyond)


def test_nothing_lies_between_two_that_are_alike(reader: JournalReader) -> None:
    end = reader.tail(LABEL)[KEY]
    assert all_of(reader, start=end) == []


def test_all_of_a_journal_may_expire(reader: JournalReader, tmp_path: Path) -> None:
    end = reader.tail(LABEL)[KEY]
    assert expire(tmp_path, NOW + 1e6)
    assert Chains(reader, fail_on_data_loss=True).slices((LABEL, KEY), None, end) == []
