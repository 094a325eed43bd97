"""Hours that a query has read are deleted, whole ones, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from rvq.errors import JournalError
from rvq.journal import JournalReader, Position
from rvq.journal.journal import Journal
from rvq.journal.places import part_at, part_end
from rvq.spark import spent as module
from rvq.spark.chains import Chains
from rvq.spark.offsets import Offsets
from rvq.spark.spent import expire_read
from tests.spark.writing import NOW, entry_of, frames_of

HOUR = 3600.0
HOURS = [part_at(NOW + n * HOUR) for n in range(4)]


class Made(NamedTuple):
    """A journal of one recorder, still open: an hour for each of four commits, and where it ended after each."""

    reader: JournalReader
    journal: Journal
    ends: list[Offsets]

    def expire(self, read: Offsets, keep: float = 0.0, now: float = NOW + 100 * HOUR) -> list[str]:
        return [path.name.removeprefix("part=") for path in expire_read(self.reader, read, keep, now)]

    def rows(self, start: Position | None, end: Position) -> int:
        chains = Chains(self.reader, fail_on_data_loss=True)
        return sum(one.rows for one in chains.slices(("work", f"{1:016x}"), start, end))


@pytest.fixture
def made(tmp_path: Path) -> Made:
    journal = Journal.open(tmp_path, group="journal", recorder=1)
    reader, ends = JournalReader(tmp_path), []
    for hour, datagram in enumerate(frames_of([f"{n}" for n in range(4)], per_frame=1)):
        journal.writer("work").add(entry_of(datagram))
        journal.commit(NOW + hour * HOUR)
        ends.append({("work", key): at for key, at in reader.tail("work").items()})
    return Made(reader, journal, ends)


def test_what_is_read_goes_by_whole_hours_and_what_is_not_stays(made: Made) -> None:
    assert made.expire({}) == []
    assert made.expire(made.ends[0]) == [], "how could it be known that there is no more of this hour?"
    assert made.expire(made.ends[2]) == HOURS[:2]
    assert made.expire(made.ends[3]) == [HOURS[2]], "the last one is being written"
    made.journal.close(NOW + 4 * HOUR)


def test_it_is_kept_for_so_long(made: Made) -> None:
    over = part_end(HOURS[0])
    assert made.expire(made.ends[3], keep=HOUR, now=over + HOUR - 1) == []
    assert made.expire(made.ends[3], keep=HOUR, now=over + HOUR) == [HOURS[0]]
    made.journal.close(NOW + 4 * HOUR)


def test_who_had_read_all_of_what_went_goes_on_without_a_loss(made: Made) -> None:
    (end,) = made.ends[3].values()
    made.journal.close(NOW + 4 * HOUR)
    assert made.expire(made.ends[3]) == HOURS
    assert made.rows(end, end) == 0


def test_the_next_segment_is_read_from_its_beginning_if_the_one_before_is_gone(made: Made) -> None:
    starts = [at for ends in made.ends for at in ends.values()]
    made.expire(made.ends[3])
    assert made.rows(starts[2], starts[3]) == 1
    made.journal.close(NOW + 4 * HOUR)


def test_a_disk_that_refuses_is_a_warning(
    made: Made, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise JournalError(made.reader.root, "read only")

    monkeypatch.setattr(module, "expire", refuse)
    assert made.expire(made.ends[3]) == []
    assert "what was read stays" in caplog.text
    made.journal.close(NOW + 4 * HOUR)
