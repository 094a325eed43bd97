"""The protocol with one rule switched off. Owns the mutants: proof that the checks can fail, and what each rule is for.

The product has no switches. A mutant is a subclass that leaves one rule out; since machines make their own parts, a
part that was just made is turned into its mutant. Nothing but the swarm and its tests runs these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rvq.core.audience import Audience, Ear, Group
from rvq.core.fanout import FanoutMachine
from rvq.core.holding import HeldFrame
from rvq.core.lanes import Lane, Loss, Part
from rvq.core.lease import Lease
from rvq.core.machine import Address
from rvq.core.membership import Membership, Peer
from rvq.core.order import Gate, KeyOrder
from rvq.core.receiver import ReceiverMachine
from rvq.core.recorder import RecorderMachine
from rvq.core.sealers import Way
from rvq.core.sealing import SealingMachine
from rvq.core.sender import SenderMachine
from rvq.core.stamps import Segment, StampLog
from rvq.core.stream import Stream
from rvq.core.table import Table
from rvq.core.taken import Taken
from rvq.core.work import Work
from rvq.message import Message
from rvq.sim.checkers import Promise
from rvq.sim.machines import FLOODED, PRODUCT, SEALED, Build
from rvq.wire.frames import NO_PAUSE, Alive, Heard, LaneKey, LaneProgress, Outcome, SenderAlive, Stamp, StreamReport
from rvq.wire.seal import NONCE_BYTES

FAR = 2**62
"""A sequence beyond every stream's end."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """The machines with one rule left out, why that is wrong, and which promises break."""

    why: str
    breaks: tuple[Promise, ...]
    sender: type[SenderMachine] = SenderMachine
    receiver: type[ReceiverMachine] = ReceiverMachine
    recorder: type[RecorderMachine] = RecorderMachine
    sealing: type[SealingMachine] | None = None
    """Not None if it takes a sealed bus to see it."""
    flooded: bool = False
    """It takes a stranger to see it."""


def build_named(mutant: str | None, *, sealed: bool = False, flooded: bool = False, fanout: bool = False) -> Build:
    """The product, or one of its mutants; with `sealed`, on a sealed bus; with `flooded`, with a stranger on it; with
    `fanout`, without multicast."""
    build = _build_named(mutant, sealed, flooded)
    return replace(build, fanout=FanoutMachine) if fanout else build


def _build_named(mutant: str | None, sealed: bool, flooded: bool) -> Build:
    if mutant is None:
        return SEALED if sealed else FLOODED if flooded else PRODUCT
    chosen = MUTANTS[mutant]
    sealing = chosen.sealing or (SealingMachine if sealed else None)
    return Build(chosen.sender, chosen.receiver, recorder=chosen.recorder, sealing=sealing, flooded=chosen.flooded)


def _become(part: Any, kind: type) -> None:
    """Turn a part that a machine has just made into its mutant."""
    part.__class__ = kind


# --- the receiving end --------------------------------------------------------------------------------------------


class MutantReceiver(ReceiverMachine):
    """A receiver whose streams have their parts exchanged as soon as they are followed."""

    stream_kind: type[Stream] = Stream
    lease_kind: type[Lease] = Lease
    log_kind: type[StampLog] = StampLog
    order_kind: type[KeyOrder] = KeyOrder
    work_kind: type[Work] = Work

    def _follow(self, now: float, id: int, address: Address) -> Stream:
        stream = super()._follow(now, id, address)
        _become(stream, self.stream_kind)
        _become(stream.lease, self.lease_kind)
        _become(stream.log, self.log_kind)
        _become(stream.work, self.work_kind)
        _become(stream.work._order, self.order_kind)
        return stream


class EternalLease(Lease):
    """Holds from the first echo on."""

    __slots__ = ()

    def holds(self, now: float) -> bool:
        return self.until > -math.inf


class NoLease(MutantReceiver):
    lease_kind = EternalLease


class ImpatientStream(Stream):
    """Asks for a lane as soon as it is an heir's."""

    def _keep(self, now: float, segment: Segment, slot: int, owned: Part, lane: Lane | None) -> None:
        super()._keep(now, segment, slot, owned, lane)
        self.lanes[LaneKey(segment.stamp, slot, owned.first)].may_ask_at = now


class ImpatientHeir(MutantReceiver):
    stream_kind = ImpatientStream


class LateCountingStream(Stream):
    """Counts the lease from when the echo comes."""

    came_at = -math.inf

    def on_alive(self, now: float, frame: SenderAlive) -> None:
        self.came_at = now
        super().on_alive(now, frame)

    def _renew(self) -> None:
        before = self.lease.base
        super()._renew()
        if self.lease.base > before:
            self.lease.renew(self.came_at)


class LeaseFromEcho(MutantReceiver):
    stream_kind = LateCountingStream


class IgnorantStream(Stream):
    """Takes an echo for a lease whether or not it knows the stamps that the echo belongs to."""

    def _renew(self) -> None:
        counter, _ = self._echo
        if counter:
            self.lease.renew(self._beats.sent_at(counter))


class EchoWithoutStamps(MutantReceiver):
    stream_kind = IgnorantStream


class NewestTableLog(StampLog):
    """Believes that whatever table it knows is in force."""

    membership: Membership

    def learn(self, now: float, stamp: Stamp, others: int = 0) -> bool:
        table = self.membership.table
        if table is not None and table.members:
            stamp = replace(stamp, groups=tuple(self._mine(entry, table) for entry in stamp.groups))
        return super().learn(now, stamp, others)

    def _mine(self, entry: Any, table: Table) -> Any:
        if entry.group != self.group:
            return entry
        shard_map = table.shard_map_of(table.members) if entry.shard_map else ()
        return entry._replace(members=table.members, draining=table.draining, shard_map=shard_map)


class NoStamps(MutantReceiver):
    log_kind = NewestTableLog

    def _follow(self, now: float, id: int, address: Address) -> Stream:
        stream = super()._follow(now, id, address)
        assert isinstance(stream.log, NewestTableLog)
        stream.log.membership = self.membership
        return stream


class NewestStampLog(StampLog):
    """Begins with the newest stamp that it hears of."""

    def announce(self, oldest: int, newest: int) -> bool:
        return super().announce(oldest if self.complete_to else newest, newest)


class IgnorantJoiner(MutantReceiver):
    log_kind = NewestStampLog


class SilentStream(Stream):
    """Never says what is done."""

    def report(self, full: bool) -> StreamReport:
        return super().report(full)._replace(lanes=())


class NoReports(MutantReceiver):
    stream_kind = SilentStream


class OpenOnesStream(Stream):
    """Says what is open: what it does not speak of counts as done, also what it never got."""

    def report(self, full: bool) -> StreamReport:
        lanes = tuple(self._open_ones(lane) for lane in self.lanes.values() if lane.startable)
        return super().report(full)._replace(lanes=lanes)

    def _open_ones(self, lane: Lane) -> LaneProgress:
        lowest = min(self._undone(lane), default=FAR)
        return LaneProgress(lane.stamp, lane.slot, lowest - 1, ())


class ReportsOpenOnes(MutantReceiver):
    stream_kind = OpenOnesStream


class SelfGrantingStream(Stream):
    """Starts on an inherited lane when the wait is over, without asking what is done of it."""

    def _ask_lanes(self, now: float) -> None:
        for lane in self.lanes.values():
            if lane.mine and not lane.granted and lane.may_ask_at <= now:
                lane.granted, lane.asked_at = True, now
                self._begin(now, lane)
        self._search(now, 0.0)
        super()._ask_lanes(now)


class HeirDoesNotAsk(MutantReceiver):
    stream_kind = SelfGrantingStream


class LonelyStream(Stream):
    """Takes a stream for orphaned on its own word."""

    def consider_orphaned(self, now: float, peers: Mapping[int, Peer]) -> None:
        if self.is_silent(now):
            self.lease.orphan(now)


class OrphanAlone(MutantReceiver):
    stream_kind = LonelyStream


class CredulousMembership(Membership):
    """Takes a word that a companion lately did not hear a sender for one that it does not hear it now."""

    def hear(self, now: float, frame: Alive, source: Address) -> bool:
        believed = tuple(heard._replace(silent=heard.orphaned) for heard in frame.heard)
        return super().hear(now, replace(frame, heard=believed), source)


class OrphanOnAStaleWord(MutantReceiver):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _become(self.membership, CredulousMembership)


class HastyOrder(KeyOrder):
    """Does not wait for older segments."""

    __slots__ = ()

    def admit(self, message: Message, gate: Gate, is_open: Callable[[Gate], bool]) -> bool:
        return super().admit(message, gate, lambda _gate: True)


class KeysDoNotWait(MutantReceiver):
    order_kind = HastyOrder


class CarelessWork(Work):
    """Goes on with what it gives away until it learns that it is another's."""

    def cut(self, now: float, lane: Lane, fence: int) -> None:
        lane.fence = fence

    def add(self, lane: Lane, frame: HeldFrame) -> None:
        fence, lane.fence = lane.fence, None
        super().add(lane, frame)
        lane.fence = fence


class HandsOverWithoutStopping(MutantReceiver):
    work_kind = CarelessWork


class UncomplainingStream(Stream):
    """Never asks for what it lacks."""

    def _ask_frames(self, now: float, peers: Mapping[int, Peer]) -> None:
        self.holding.lacking(now)


class NoRepair(MutantReceiver):
    stream_kind = UncomplainingStream


class BoastfulWork(Work):
    """Claims to have done whatever it finds done."""

    def _was_done(self, message: Message) -> bool:
        known = super()._was_done(message)
        if known:
            self._note_one(0.0, Outcome.ACKED, message)
        return known


class TellsOthersDeeds(MutantReceiver):
    work_kind = BoastfulWork


# --- the recording end --------------------------------------------------------------------------------------------


class HastyRecorder(RecorderMachine):
    """Says that all is safe when it has taken it."""

    def take(self, now: float, most: int) -> list[Taken]:  # type: ignore[override]  # as its base
        taken = super().take(now, most)
        super().stored(now, taken)
        return taken

    def stored(self, now: float, taken: Iterable[Taken]) -> None:
        """It was said before."""


# --- the seal -----------------------------------------------------------------------------------------------------


class ForgetfulSeal(SealingMachine):
    """Lets in what is true, however often."""

    def _is_new(self, way: Way, counter: int) -> bool:
        return True


class TrustingSeal(SealingMachine):
    """Takes whoever sealed something true for one who is here now."""

    def _challenge(self, now: float, salt: bytes, source: Address) -> None:
        nonce = self._sealers.ask(now, salt, source, bytes(NONCE_BYTES))
        if nonce is not None:
            self._sealers.prove(now, salt, source, nonce, 0)


# --- the sending end ----------------------------------------------------------------------------------------------


class MutantSender(SenderMachine):
    """A sender whose audience is exchanged before anybody is in it."""

    audience_kind: type[Audience] = Audience

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _become(self._audience, self.audience_kind)


class CredulousAudience(Audience):
    """Takes a report for that of the receiver in whose name it is, wherever it comes from."""

    def is_from(self, receiver: int, address: Address) -> bool:
        return receiver in self.ears


class BelievesAnyAddress(MutantSender):
    audience_kind = CredulousAudience


class TrustingAudience(Audience):
    """Takes it that whoever lost a lane knows it at once."""

    def has_stopped(self, now: float, loss: Loss, segments: Sequence[Segment]) -> bool:
        return True


class AnswersAtOnce(MutantSender):
    audience_kind = TrustingAudience


class LenientAudience(Audience):
    """Strikes nobody out."""

    def _strike(self, now: float, group: Group, table: Table) -> None:
        pass


class StrikesNobody(MutantSender):
    audience_kind = LenientAudience


class OneWayAudience(Audience):
    """Is content to hear a receiver, whether or not that one hears it."""

    def hear(
        self, now: float, frame: Alive, address: Address, heard: Heard | None, sent_at: Callable[[int], float]
    ) -> Ear | None:
        ear = super().hear(now, frame, address, heard, lambda _counter: now)
        if ear is not None:
            ear.both_ways_at = now
        return ear


class HearsOneWay(MutantSender):
    audience_kind = OneWayAudience


LEASES = (Promise.TWO_OWNERS, Promise.REPEATED)


class KeepsAPauseToItself(ReceiverMachine):
    """Only who hears an order knows of the pause, or of its end."""

    def _on_alive(self, now: float, frame: Alive, source: Address) -> None:
        super()._on_alive(now, replace(frame, pause=NO_PAUSE), source)


MUTANTS: dict[str, Mutant] = {
    "no-lease": Mutant("a receiver starts messages whether or not its lease holds", LEASES, receiver=NoLease),
    "no-lease-wait": Mutant(
        "heirs do not wait until the former owner's lease is over",
        LEASES,
        sender=AnswersAtOnce,
        receiver=ImpatientHeir,
    ),
    "lease-from-echo": Mutant("the lease counts from when the echo comes", LEASES, receiver=LeaseFromEcho),
    "echo-without-stamps": Mutant(
        "an echo renews the lease of one who does not know the stamps", LEASES, receiver=EchoWithoutStamps
    ),
    "no-stamps": Mutant(
        "receivers own by the newest table they know, not by the stamp",
        (Promise.LOST, Promise.TWO_OWNERS, Promise.REPEATED),
        receiver=NoStamps,
    ),
    "joiners-ignore-open-stamps": Mutant(
        "a joiner learns only the newest stamp, so it never knows what it inherits",
        (Promise.LOST,),
        receiver=IgnorantJoiner,
    ),
    "no-reports": Mutant("receivers never say what is done", (Promise.LOST,), receiver=NoReports),
    "reports-open-ones": Mutant(
        "progress says what is open, so what was never heard of counts as done",
        (Promise.LOST,),
        receiver=ReportsOpenOnes,
    ),
    "answers-at-once": Mutant(
        "the sender answers heirs without knowing that the former owner has stopped", LEASES, sender=AnswersAtOnce
    ),
    "no-strikes": Mutant("the sender strikes nobody out of its stamps", (Promise.LOST,), sender=StrikesNobody),
    "one-way": Mutant("the sender counts on receivers that do not hear it", (Promise.LOST,), sender=HearsOneWay),
    "heir-does-not-ask": Mutant(
        "an heir starts without asking what is done", (Promise.REPEATED,), receiver=HeirDoesNotAsk
    ),
    "orphan-alone": Mutant(
        "a receiver takes a stream for orphaned without the others' word", LEASES, receiver=OrphanAlone
    ),
    "orphan-on-a-stale-word": Mutant(
        "a receiver takes a stream for orphaned because others once did not hear its sender",
        LEASES,
        receiver=OrphanOnAStaleWord,
    ),
    "keys-do-not-wait": Mutant(
        "a keyed message does not wait for older segments", (Promise.ORDER,), receiver=KeysDoNotWait
    ),
    "hands-over-without-stopping": Mutant(
        "a receiver goes on with what it hands over until it hears that it is another's",
        LEASES,
        receiver=HandsOverWithoutStopping,
    ),
    "recorder-acknowledges-before-stored": Mutant(
        "a recorder says that messages are done when it has taken them, not when they are on its disk",
        (Promise.STORED, Promise.LOST),
        recorder=HastyRecorder,
    ),
    "tells-others-deeds": Mutant(
        "a receiver tells recorders that it did what it found done", (Promise.TOLD,), receiver=TellsOthersDeeds
    ),
    "no-replay-window": Mutant(
        "on a sealed bus, what was let in before is let in again", (Promise.SEALED,), sealing=ForgetfulSeal
    ),
    "no-challenge": Mutant(
        "on a sealed bus, whoever is heard for the first time is taken to be there",
        (Promise.SEALED,),
        sealing=TrustingSeal,
    ),
    "pause-not-merged": Mutant(
        "receivers do not learn from each other whether their group is paused",
        (Promise.LOST,),
        receiver=KeepsAPauseToItself,
    ),
    "believes-any-address": Mutant(
        "the sender takes anybody's word for what receivers have done",
        (Promise.LOST,),
        sender=BelievesAnyAddress,
        flooded=True,
    ),
    "no-repair": Mutant("nobody asks for what was lost", (Promise.LOST,), receiver=NoRepair),
}
