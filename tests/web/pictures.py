"""A made-up bus, in the shape of docs/operations.md: what the page is drawn from where no real one is needed."""

from __future__ import annotations

import math
import time
from hashlib import blake2b
from typing import Any

HOSTILE = '<img src=x onerror="window.stolen=1">'
"""A label that a stranger may choose, since any text is one."""


def id_of(name: object) -> str:
    return blake2b(str(name).encode(), digest_size=8).hexdigest()


class MadeUp:
    """A source of pictures. Its numbers move with the clock that is handed in; who is there is set by tests."""

    def __init__(self, clock: Any = time.time, begin: float | None = None) -> None:
        self.clock = clock
        self.begin = clock() if begin is None else begin
        self.groups: dict[tuple[str, str], list[str]] = {}
        self.senders: dict[str, list[str]] = {}
        self.silent: set[str] = set()
        self.paused: set[tuple[str, str]] = set()
        self.switches: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.weights: dict[str, int] = {}
        self.troubled: set[str] = set()

    def set_group(self, label: str, group: str, *names: str, at: float | None = None) -> None:
        """These are its receivers from now on."""
        before, ids = set(self.groups.get((label, group), [])), sorted(map(id_of, names))
        at = self.clock() if at is None else at
        for id in sorted(set(ids) - before):
            self.tell(at, label, group, id, "joined", f"{id[:4]}… joined")
        for id in sorted(before - set(ids)):
            self.tell(at, label, group, id, "expelled", f"{id[:4]}… was silent for 1 s, and is out of the table")
        self.groups[label, group] = ids
        version = 1 + sum((one["label"], one["group"]) == (label, group) for one in self.switches)
        self.switches.append(
            {"at": at, "label": label, "group": group, "version": [version, ids[0]], "slots": self.slots(ids)}
        )

    def slots(self, ids: list[str]) -> list[str]:
        return [id for id in ids for _ in range(self.weights.get(id, 1))]

    def tell(self, at: float, label: str, group: str, who: str, kind: str, text: str) -> None:
        self.events.append({"at": at, "label": label, "group": group, "who": who, "kind": kind, "text": text})

    # --- what an observer says ------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        at = self.clock()
        labels = sorted({label for label, _ in self.groups} | set(self.senders))
        shown = [self._label(label, at) for label in labels]
        receivers = [one for label in shown for group in label["groups"] for one in group["receivers"]]
        senders = [one for label in shown for one in label["senders"]]
        totals: dict[str, Any] = {
            name: sum(one[name] for one in receivers)
            for name in ("emitted", "acked", "retried", "dead", "expired", "handed_over", "lost", "repaired")
        }
        totals |= {"labels": len(shown), "groups": len(self.groups), "receivers": len(receivers)}
        totals |= {"senders": len(senders), "rate_in": sum(one["rate"] for one in senders)}
        totals |= {"rate_out": sum(one["rate"] for one in receivers if one["state"] != "silent")}
        totals |= {name: sum(one[name] for one in senders) for name in ("inserted", "sent", "undone")}
        bus = {"interface": "lo", "port": 7400, "address": "239.192.0.0/16", "sealed": False}
        return {
            "at": at,
            "bus": bus,
            "labels": shown,
            "events": sorted(self.events, key=lambda event: event["at"])[-300:],
            "switches": self.switches[-300:],
            "totals": totals,
        }

    def history(self) -> dict[str, Any]:
        now = self.clock()
        points = {}
        for (label, group), ids in self.groups.items():
            for id in ids:
                rows = []
                for ago in range(119, 0, -1):
                    at = now - ago
                    if at >= self.begin:
                        one = self._receiver(label, group, ids, id, at)
                        repaired = one["repaired"] - self._receiver(label, group, ids, id, at - 1)["repaired"]
                        rows.append([at, one["rate"], one["share"], one["lag"], repaired])
                points[id] = rows
        return {"receivers": points, "senders": {}}

    def _label(self, label: str, at: float) -> dict[str, Any]:
        groups = []
        for (name, group), ids in sorted(self.groups.items()):
            if name == label:
                versions = [one for one in self.switches if (one["label"], one["group"]) == (label, group)]
                version = versions[-1]["version"]
                receivers = [self._receiver(label, group, ids, id, at) for id in ids]
                paused = (label, group) in self.paused
                slots = len(self.slots(ids))
                groups.append(
                    {"group": group, "version": version, "slots": slots, "paused": paused, "receivers": receivers}
                )
        return {
            "label": label,
            "groups": groups,
            "senders": [self._sender(name, at) for name in self.senders.get(label, [])],
        }

    def _wave(self, id: str, age: float) -> float:
        seed = int(id[:4], 16)
        return 1 + 0.18 * math.sin(age / (5 + seed % 7) + seed) + 0.07 * math.sin(age * 1.7 + seed)

    def _share(self, ids: list[str], id: str, age: float) -> float:
        parts = {one: self.weights.get(one, 1) * self._wave(one, age) for one in ids}
        return parts[id] / sum(parts.values())

    def _receiver(self, label: str, group: str, ids: list[str], id: str, at: float) -> dict[str, Any]:
        seed, age = int(id[:4], 16), max(0.0, at - self.begin)
        slots = self.slots(ids)
        index = [slot for slot, one in enumerate(slots) if one == id]
        share = len(index) / len(slots)
        wave = self._wave(id, age)
        rate = 1800 * share * wave * (1 + 0.3 * math.sin(age / 31))
        acked = int(1800 * share * age)
        repaired = int(age / (9 + seed % 11)) * 3 if id in self.troubled else 0
        state = "silent" if id in self.silent else "paused" if (label, group) in self.paused else "in"
        return {
            "id": id, "host": f"worker-{seed % 9 + 1:02}", "pid": 2000 + seed % 9000,
            "address": f"10.0.0.{seed % 250 + 1}:40123", "state": state, "index": index, "weight": max(1, len(index)),
            "share": self._share(ids, id, age), "rate": rate, "emitted": acked + 3, "acked": acked,
            "retried": 2 if id in self.troubled else 0, "dead": 0, "expired": 0, "handed_over": 0,
            "lost": 0, "repaired": repaired, "duplicates": 0, "bad_frames": 0, "backlog": seed % 5,
            "lag": 0.002 + 0.0015 * (1 + math.sin(age / 3 + seed)) + 0.02 * (id in self.troubled and age % 23 < 2),
            "lease_age": 0.12 + seed % 10 / 100, "heard_age": 4.2 if state == "silent" else seed % 20 / 100,
            "started_at": self.begin, "recorder": group == "journal",
        }  # fmt: skip

    def _sender(self, name: str, at: float) -> dict[str, Any]:
        age = max(0.0, at - self.begin)
        sent = int(900 * age)
        return {
            "id": id_of(name), "host": name, "pid": 815, "address": "10.0.0.12:51000", "state": "sending",
            "rate": 900 + 60 * math.sin(age / 4), "inserted": sent + 40, "sent": sent + 20, "acked": sent,
            "undone": 40, "lost": 0, "window_used": 5_400_000 + int(900_000 * math.sin(age)), "window": 33_554_432,
            "repaired": 6, "bad_frames": 0, "stamp": 4, "stamp_at": 1801, "heard_age": 0.05, "started_at": self.begin,
        }  # fmt: skip


def busy(clock: Any = time.time) -> MadeUp:
    """Some minutes of a bus on which things happened."""
    made = MadeUp(clock, clock() - 400)
    now = clock()
    names = ["ada", "ben", "cyd", "dov", "eve"]
    made.weights[id_of("cyd")] = 2
    made.troubled = {id_of("ben"), id_of("dov")}
    made.set_group("orders.eu", "default", "ada", "ben", at=now - 390)
    for age, there in ((300, names[:3]), (180, names[:4]), (140, names), (95, [*names[:1], *names[2:]]), (30, names)):
        made.set_group("orders.eu", "default", *there, at=now - age)
    made.set_group("orders.eu", "journal", "rec-1", "rec-2", at=now - 350)
    made.set_group("thumbnails", "default", "pix-1", "pix-2", "pix-3", at=now - 250)
    made.set_group(HOSTILE, "default", "mal", at=now - 60)
    made.senders = {"orders.eu": ["shop-1", "shop-2"], "thumbnails": ["uploads"], "mail": ["crm"]}
    made.silent.add(id_of("pix-2"))
    made.paused.add(("orders.eu", "journal"))
    made.tell(now - 12, "orders.eu", "default", id_of("ben"), "loss", f"{id_of('ben')[:4]}… asked for 3 frames again")
    return made


def crowd(count: int = 40) -> MadeUp:
    """Many receivers of one group."""
    made = MadeUp(begin=time.time() - 300)
    for step in (count - 12, count - 6, count - 1, count):
        made.set_group(
            "work", "default", *(f"w{number}" for number in range(step)), at=time.time() - 10 * (count - step)
        )
    made.senders = {"work": ["load-1", "load-2"]}
    return made
