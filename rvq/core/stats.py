"""The catalogue of counters. Owns their names and meaning; each machine counts in one of these."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from operator import attrgetter


@dataclass(slots=True)
class Counts:
    """What became of the messages of one lane or one shard at one receiver. The same names as in `Stats`."""

    routed: int = 0
    emitted: int = 0
    acked: int = 0
    retried: int = 0
    dead: int = 0
    expired: int = 0
    handed_over: int = 0


@dataclass(slots=True, repr=False)
class Stats:
    """Counts since the start of one sender or receiver. Of messages, unless it says frames."""

    inserted: int = 0
    """Sender: accepted by `send`."""
    routed: int = 0
    """Sender: given a sequence and sent. Receiver: arrived and its own."""
    emitted: int = 0
    """Receiver: handed to the user; again for each retry."""
    acked: int = 0
    """Sender: done in every group. Receiver: acknowledged."""
    retried: int = 0
    """Receiver: to be handed out again."""
    dead: int = 0
    """Receiver: rejected for good."""
    expired: int = 0
    """Receiver: dropped because their time to live was over."""
    handed_over: int = 0
    """Receiver: given to another one before they were started."""
    repaired: int = 0
    """Sender: frames sent again. Receiver: frames that were asked for."""
    duplicates: int = 0
    """Receiver: frames that came again."""
    bad_frames: int = 0
    """Datagrams that were no frames of this bus, and were dropped."""
    strangers: int = 0
    """Datagrams of peers with another key, with none where this bus has one, or with one where it has none."""
    replayed: int = 0
    """Datagrams of a sealed bus that had been here before, or were too old to tell."""
    lost: int = 0
    """Receiver: messages given up because their sender died. Sender: of groups to which nobody came back. Tap: those
    that it did not see: missing for too long, or it was too slow."""
    unrecorded: int = 0
    """Recorder: control frames that were history, and for which there was no room."""
    refused: int = 0
    """Frames from where they cannot come, or more of them than one may say: see docs/security.md."""
    lanes: dict[int, Counts] = field(default_factory=dict)
    """Receiver: by the slot that messages belong to."""
    shards: dict[int, Counts] = field(default_factory=dict)
    """Receiver: by shard, of messages with keys."""

    def lane(self, slot: int) -> Counts:
        counts = self.lanes.get(slot)
        if counts is None:
            counts = self.lanes[slot] = Counts()
        return counts

    def shard(self, shard: int) -> Counts:
        counts = self.shards.get(shard)
        if counts is None:
            counts = self.shards[shard] = Counts()
        return counts

    def __repr__(self) -> str:
        """What was counted. Some counters are of senders only or of receivers only, and would always be 0."""
        counted = ((name, getattr(self, name)) for name in self.__dataclass_fields__)
        return f"Stats({', '.join(f'{name}={count!r}' for name, count in counted if count)})"

    def as_dict(self) -> dict[str, object]:
        """As plain numbers and dicts."""
        return asdict(self)

    def counters(self) -> tuple[int, ...]:
        """All of them in the order of the catalogue, without those by lane and shard."""
        return _read_counters(self)


COUNTERS = tuple(name for name in Stats.__dataclass_fields__ if name not in ("lanes", "shards"))
"""The catalogue: names in the order in which they are told. New ones go to its end."""

_read_counters = attrgetter(*COUNTERS)
