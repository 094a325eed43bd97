"""Offsets: one position for each label and recorder. Owns how they look as JSON; knows no Spark.

Spark compares offsets as JSON text, so keys are sorted and a position is one text: `part=…/….rvqj:byte:row`.
"""

from __future__ import annotations

from typing import Any, Final

from rvq.errors import SparkError
from rvq.journal import JournalReader, Position, SegmentName
from rvq.spark.options import EARLIEST, LATEST, Ends, ReadOptions

Chain = tuple[str, str]
"""A label and a recorder: what one recorder wrote to one label has an order of its own."""
Offsets = dict[Chain, Position]
Json = dict[str, Any]

AT: Final = "at"
"""Key of an offset that is not a position yet: `{"at": "start"}`. Spark asks twice for the first offset of a query,
and the answers must be the same; so the first concrete one is what `latestOffset` then says."""


def as_json(offsets: Offsets) -> Json:
    found: Json = {}
    for (label, recorder), (segment, position, row) in sorted(offsets.items()):
        found.setdefault(label, {})[recorder] = f"{segment}:{position}:{row}"
    return found


def from_json(found: Json) -> Offsets:
    """SparkError if these are no offsets of a journal."""
    offsets: Offsets = {}
    for label, chains in found.items():
        if not isinstance(chains, dict):
            raise SparkError(f"offsets of {label!r} are not positions by recorder: take them from a query's progress")
        for recorder, text in chains.items():
            offsets[label, recorder] = _position(label, recorder, text)
    return offsets


def _position(label: str, recorder: str, text: object) -> Position:
    segment, _, rest = str(text).rpartition(".rvqj:")
    name = SegmentName.parse(f"{segment}.rvqj")
    numbers = rest.split(":")
    if name is None or len(numbers) != 2 or not all(map(str.isdecimal, numbers)) or f"{name.recorder:016x}" != recorder:
        raise SparkError(
            f"{text!r} is no position of recorder {recorder} in {label!r}: take it from a query's progress"
        )
    return Position(str(name), int(numbers[0]), int(numbers[1]))


def labels_of(reader: JournalReader, options: ReadOptions) -> list[str]:
    if options.labels is not None:
        return list(options.labels)
    return [label for label in reader.labels() if options.wants(label)]


def head(reader: JournalReader, options: ReadOptions) -> Offsets:
    """Where everything that is wanted begins."""
    return {(label, key): at for label in labels_of(reader, options) for key, at in reader.head(label).items()}


def tail(reader: JournalReader, options: ReadOptions) -> Offsets:
    """Where everything that is wanted and synced ends."""
    return {(label, key): at for label in labels_of(reader, options) for key, at in reader.tail(label).items()}


def starting(reader: JournalReader, options: ReadOptions) -> Offsets:
    """Where a query begins."""
    if options.starting_at > float("-inf"):
        labels = labels_of(reader, options)
        return {(label, k): at for label in labels for k, at in reader.seek_time(label, options.starting_at).items()}
    return resolve(reader, options, options.starting)


def resolve(reader: JournalReader, options: ReadOptions, ends: Ends) -> Offsets:
    """Positions for what an option says; per label it may also say earliest or latest."""
    if ends == EARLIEST:
        return head(reader, options)
    if ends == LATEST:
        return tail(reader, options)
    assert isinstance(ends, dict)
    found: Offsets = {}
    for label, what in ends.items():
        if not options.wants(label):
            raise SparkError(f"offsets are given for {label!r}, which is not subscribed")
        if what in (EARLIEST, LATEST):
            at = reader.head(label) if what == EARLIEST else reader.tail(label)
            found |= {(label, key): position for key, position in at.items()}
        else:
            found |= from_json({label: what})
    return found


def order(position: Position) -> tuple[int, int]:
    """What positions of one chain are compared by."""
    name = SegmentName.parse(position.segment)
    if name is None:
        raise SparkError(f"{position.segment!r} does not name a segment: take offsets from a query's progress")
    return name.counter, position.position
