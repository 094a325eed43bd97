"""One label as an observer knows it: its groups and senders, and what happens between them.

Owns who is taken for silent, gone or dead, and the words of events.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rvq import limits
from rvq.core.machine import Address, Wall
from rvq.core.observed.ends import Seen, SeenReceiver, SeenSender, printable
from rvq.core.observed.group import SeenGroup
from rvq.core.observed.happenings import Happenings, short
from rvq.timings import Timings
from rvq.wire.frames import About, Alive, Control, Goodbye, SenderAlive, SenderGoodbye, StreamReport, TableFrame

SILENT_BEATS = 2.5
"""Heartbeats after which one is called silent: the next one may be a little late."""
GONE_S = 10.0
"""One that is silent for so much longer than `expiry` is not shown any more, whatever tables say."""


class SeenLabel:
    """One label. Raises nothing, whatever is said of it."""

    def __init__(self, label: str, timings: Timings, wall: Wall, happenings: Happenings, now: float) -> None:
        self.label = label
        self.groups: dict[str, SeenGroup] = {}
        self.senders: dict[int, SeenSender] = {}
        self.heard_at = now
        self._since = now
        self._timings, self._wall, self._happenings = timings, wall, happenings
        self._departed: dict[int, None] = {}
        """Those who said goodbye: late words of theirs bring nobody back."""

    # --- what is heard --------------------------------------------------------------------------------------------

    def hear(self, now: float, frame: Control, address: Address) -> None:
        """A control frame of this label."""
        self.heard_at = now
        match frame:
            case About():
                self._on_about(now, frame, address)
            case Alive():
                self._on_alive(now, frame, address)
            case SenderAlive():
                self._on_sender_alive(now, frame, address)
            case TableFrame():
                group = self._group(frame.group)
                if group is not None:
                    group.heard_table(frame)
            case Goodbye():
                self._on_goodbye(now, frame)
            case SenderGoodbye():
                self._on_sender_goodbye(now, frame)

    def _on_about(self, now: float, frame: About, address: Address) -> None:
        wall = self._wall.read(now)
        if not frame.group:
            sender = self._sender(now, frame.source)
            if sender is not None:
                self._is_heard(now, sender, "")
                grown = sender.introduce(now, wall, frame, address)
                self._tell_lost(wall, "", frame.source, grown["lost"])
                self._tell_switch(now, sender)
            return
        receiver = self._receiver(now, frame.source, frame.group)
        if receiver is None:
            return
        self._is_heard(now, receiver, frame.group)
        grown = receiver.introduce(now, wall, frame, address)
        if grown["repaired"]:
            self._happenings.tell_loss(wall, self.label, receiver.group, receiver.id, grown["repaired"])
        self._tell_lost(wall, receiver.group, receiver.id, grown["lost"])
        self.groups[receiver.group].update(wall, receiver, watched=self._is_watched(now))

    def _on_alive(self, now: float, frame: Alive, address: Address) -> None:
        receiver = self._receiver(now, frame.source, frame.group)
        if receiver is None or not receiver.beat(now, frame, address):
            return
        self._is_heard(now, receiver, receiver.group)
        self.groups[receiver.group].update(self._wall.read(now), receiver, watched=self._is_watched(now))
        for report in frame.reports:
            self._note_lanes(now, receiver, report)

    def _on_sender_alive(self, now: float, frame: SenderAlive, address: Address) -> None:
        sender = self._sender(now, frame.source)
        if sender is None or not sender.beat(now, frame, address):
            return
        self._is_heard(now, sender, "")
        self._tell_switch(now, sender)
        for echo in frame.echoes:
            for group in self.groups.values():
                receiver = group.receivers.get(echo.id)
                if receiver is not None:
                    receiver.echoed(frame.source, echo.counter)

    def _on_goodbye(self, now: float, frame: Goodbye) -> None:
        group = self.groups.get(frame.group)
        receiver = group.receivers.pop(frame.source, None) if group else None
        if receiver is not None:
            self._depart(receiver.id)
            self._tell(now, frame.group, receiver.id, "left", f"{short(receiver.id)} left {frame.group}")

    def _on_sender_goodbye(self, now: float, frame: SenderGoodbye) -> None:
        sender = self.senders.get(frame.source)
        if sender is not None:
            self._depart(sender.id)
            self._drop_sender(sender)
            self._tell(now, "", sender.id, "sender left", f"sender {short(sender.id)} left: all of it is done")

    # --- who is there ---------------------------------------------------------------------------------------------

    @property
    def ends(self) -> int:
        return len(self.senders) + sum(len(group.receivers) for group in self.groups.values())

    def receivers(self) -> Iterator[SeenReceiver]:
        for group in self.groups.values():
            yield from group.receivers.values()

    def _group(self, name: str) -> SeenGroup | None:
        group = self.groups.get(name)
        if group is None and len(self.groups) < limits.GROUPS_MAX and printable(name) == name:
            group = self.groups[name] = SeenGroup(self.label, name, self._happenings)
        return group

    def _receiver(self, now: float, id: int, name: str) -> SeenReceiver | None:
        group = self._group(name)
        if group is None or id in self._departed:
            return None
        receiver = group.receivers.get(id)
        if receiver is None:
            if self.ends >= limits.OBSERVED_ENDS_MAX:
                return None
            receiver = group.receivers[id] = SeenReceiver(id, self.label, name, now)
        return receiver

    def _sender(self, now: float, id: int) -> SeenSender | None:
        sender = self.senders.get(id)
        if sender is None:
            if id in self._departed or self.ends >= limits.OBSERVED_ENDS_MAX:
                return None
            sender = self.senders[id] = SeenSender(id, self.label, now)
            if self._is_watched(now):
                self._tell(now, "", id, "sender", f"sender {short(id)} came")
        return sender

    def _is_watched(self, now: float) -> bool:
        """Long enough that who is heard for the first time was not there before."""
        return now >= self._since + 2 * self._timings.expiry

    def _depart(self, id: int) -> None:
        self._departed[id] = None
        if len(self._departed) > limits.REMEMBERED_MAX:
            del self._departed[next(iter(self._departed))]

    def _drop_sender(self, sender: SeenSender) -> None:
        self.senders.pop(sender.id, None)
        for receiver in self.receivers():
            receiver.forget_stream(sender.id)

    # --- what follows ---------------------------------------------------------------------------------------------

    def is_silent(self, now: float, end: Seen) -> bool:
        return now - end.heard_at > SILENT_BEATS * self._timings.heartbeat

    def _is_heard(self, now: float, end: Seen, group: str) -> None:
        if end.silent_told:
            end.silent_told = False
            self._tell(now, group, end.id, "back", f"{short(end.id)} is heard again")

    def expire(self, now: float) -> None:
        """Who has been silent for too long."""
        expiry = self._timings.expiry
        for group in list(self.groups.values()):
            for receiver in list(group.receivers.values()):
                age = now - receiver.heard_at
                if age <= expiry:
                    continue
                if group.is_out(receiver) or age > expiry + GONE_S:
                    group.drop(receiver)
                    self._tell(now, group.name, receiver.id, "expelled", f"{short(receiver.id)} is out of {group.name}")
                elif not receiver.silent_told:
                    receiver.silent_told = True
                    self._tell(now, group.name, receiver.id, "silent", f"{short(receiver.id)} is not heard any more")
            if not group.receivers and not any(group.name in s.versions for s in self.senders.values()):
                del self.groups[group.name]
        for sender in list(self.senders.values()):
            age = now - sender.heard_at
            if age > expiry and not sender.silent_told:
                sender.silent_told = True
                text = f"sender {short(sender.id)} is not heard any more"
                self._tell(now, "", sender.id, "sender died", text)
            if age > expiry + GONE_S:
                self._drop_sender(sender)

    def forgive(self, nap: float) -> None:
        """The observer slept: nobody was silent in that time."""
        self.heard_at += nap
        for end in (*self.receivers(), *self.senders.values()):
            end.forgive(nap)

    def _note_lanes(self, now: float, receiver: SeenReceiver, report: StreamReport) -> None:
        """Who reports on a lane that one had who is not heard any more has inherited it."""
        sender = self.senders.get(report.stream)
        if sender is None:
            return
        inherited: dict[int, int] = {}
        for lane in report.lanes:
            key = (lane.stamp, lane.slot)
            before = sender.owners.get(key)
            if before is None and len(sender.owners) >= limits.OBSERVED_LANES_MAX:
                continue
            if before is not None and before != receiver.id and self._is_there(now, receiver.group, before):
                continue  # lanes that were handed over have two owners, each of a part
            sender.owners[key] = receiver.id
            if before is not None and before != receiver.id:
                inherited[before] = inherited.get(before, 0) + 1
        for before, lanes in inherited.items():
            text = f"{short(receiver.id)} inherited {lanes} lane{'s' * (lanes != 1)} of {short(before)}"
            self._tell(now, receiver.group, receiver.id, "inherited", f"{text} from sender {short(sender.id)}")

    def _is_there(self, now: float, group: str, id: int) -> bool:
        receiver = self.groups[group].receivers.get(id)
        return receiver is not None and not self.is_silent(now, receiver)

    def _tell_switch(self, now: float, sender: SeenSender) -> None:
        """When heartbeat and introduction speak of the same stamp, which is new."""
        if sender.alive is None or sender.about is None or sender.about.stamp != sender.alive.newest_stamp:
            return
        stamp, versions, told = sender.about.stamp, sender.versions, sender.versions_told
        if told is not None and stamp > sender.stamp_told:
            # Of several stamps at once, only the newest one's sequence is known.
            since = "from" if stamp == sender.stamp_told + 1 else "at the latest from"
            since += f" sequence {sender.about.stamp_at} on"
            taken = [name for name, version in versions.items() if told.get(name) != version and name in self.groups]
            for name in taken:
                text = f"sender {short(sender.id)} took table {versions[name].counter} of {name} {since}"
                self._tell(now, name, sender.id, "switched", text)
            if not taken:
                # Struck out, or let in again: its table is what it was, and who owns what is not.
                group = next(iter(versions)) if len(versions) == 1 else ""
                text = f"sender {short(sender.id)} switched to other members of its tables {since}"
                self._tell(now, group, sender.id, "switched", text)
        sender.stamp_told, sender.versions_told = stamp, versions

    def _tell_lost(self, wall: float, group: str, who: int, count: int) -> None:
        if count:
            text = f"{short(who)} gave up {count} message{'s' * (count != 1)}"
            self._happenings.tell(wall, self.label, group, who, "lost", text)

    def _tell(self, now: float, group: str, who: int, kind: str, text: str) -> None:
        self._happenings.tell(self._wall.read(now), self.label, group, who, kind, text)

    # --- looking --------------------------------------------------------------------------------------------------

    def picture(self, now: float) -> dict[str, Any]:
        groups = []
        for _, group in sorted(self.groups.items()):
            silent = [r.id for r in group.receivers.values() if self.is_silent(now, r)]
            groups.append(group.picture(now, silent))
        senders = [
            {**sender.picture(now), "state": "silent" if self.is_silent(now, sender) else sender.state()}
            for _, sender in sorted(self.senders.items())
        ]
        return {"label": self.label, "groups": groups, "senders": senders}

    def is_complete(self, now: float) -> bool:
        """Has everyone said who it is of whom anything is known, and is every slot's owner one of them?"""
        if any(end.about is None for end in (*self.receivers(), *self.senders.values())):
            return False
        if any(state not in self.groups for sender in self.senders.values() for state in sender.versions):
            return False
        return all(
            0 not in group.slots() and set(group.slots()) <= group.receivers.keys() for group in self.groups.values()
        )

    def check_invariants(self) -> None:
        assert self.ends <= limits.OBSERVED_ENDS_MAX
        assert len(self.groups) <= limits.GROUPS_MAX
        assert len(self._departed) <= limits.REMEMBERED_MAX
        assert all(len(sender.owners) <= limits.OBSERVED_LANES_MAX for sender in self.senders.values())
        assert all(end.heard_at < math.inf for end in (*self.receivers(), *self.senders.values()))
