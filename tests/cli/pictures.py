"""Pictures of a bus, for the tests of what shows them."""

from __future__ import annotations

from typing import Any

AT = 1_700_000_000.25


def a_receiver(number: int = 1, **others: Any) -> dict[str, Any]:
    counts = ("emitted", "acked", "retried", "dead", "expired", "handed_over", "lost", "repaired", "duplicates")
    facts: dict[str, Any] = {
        "id": f"{number:04x}c3d4e5f60718",
        "host": "host-a",
        "pid": 4710 + number,
        "address": f"10.0.0.{number}:40123",
        "state": "in",
        "index": [number - 1],
        "weight": 1,
        "share": 0.5,
        "rate": 120.5,
        "backlog": 0,
        "lag": 0.012,
        "lease_age": 0.21,
        "heard_age": 0.13,
        "started_at": AT - 1000,
        "recorder": False,
        "bad_frames": 0,
    }
    return {**facts, **dict.fromkeys(counts, 0), **others}


def a_sender(number: int = 1, **others: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "id": f"{0x5000 + number:04x}445566778899",
        "host": "host-b",
        "pid": 815,
        "address": "10.0.0.12:51000",
        "state": "sending",
        "rate": 241.0,
        "inserted": 2403,
        "sent": 2402,
        "acked": 2400,
        "undone": 3,
        "lost": 0,
        "window_used": 25,
        "window": 100,
        "repaired": 0,
        "bad_frames": 0,
        "stamp": 4,
        "stamp_at": 1801,
        "heard_age": 0.05,
        "started_at": AT - 1000,
    }
    return {**facts, **others}


def a_group(name: str = "default", *receivers: dict[str, Any], **others: Any) -> dict[str, Any]:
    facts = {"group": name, "version": [3, "11b2c3d4e5f60718"], "slots": len(receivers), "paused": False}
    return {**facts, "receivers": list(receivers), **others}


def a_label(name: str = "work", *, groups: Any = (), senders: Any = ()) -> dict[str, Any]:
    return {"label": name, "groups": list(groups), "senders": list(senders)}


def an_event(text: str, kind: str = "joined", label: str = "work", at: float = AT) -> dict[str, Any]:
    return {"at": at, "label": label, "group": "default", "who": None, "kind": kind, "text": text}


def a_picture(*labels: dict[str, Any], events: Any = ()) -> dict[str, Any]:
    groups = [group for label in labels for group in label["groups"]]
    receivers = [receiver for group in groups for receiver in group["receivers"]]
    senders = [sender for label in labels for sender in label["senders"]]
    counts = ("dead", "lost", "undone", "inserted", "sent", "acked")
    return {
        "at": AT,
        "bus": {"interface": "lo", "port": 7400, "address": "239.192.0.0/16", "sealed": False},
        "labels": list(labels),
        "events": list(events),
        "switches": [],
        "totals": {
            "labels": len(labels),
            "groups": len(groups),
            "receivers": len(receivers),
            "senders": len(senders),
            "rate_in": sum(sender["rate"] for sender in senders),
            "rate_out": sum(receiver["rate"] for receiver in receivers),
            **{name: sum(row.get(name, 0) for row in (*receivers, *senders)) for name in counts},
        },
    }


def busy(receivers: int = 3) -> dict[str, Any]:
    """A label with two groups and two senders, and another where nobody is."""
    rows = [a_receiver(n + 1, rate=100.0 * n, backlog=10 - n) for n in range(receivers)]
    groups = [a_group("default", *rows), a_group("mail", a_receiver(9, index=[0, 1, 2], weight=3, recorder=True))]
    work = a_label("work", groups=groups, senders=[a_sender(1), a_sender(2, state="idle", undone=0)])
    return a_picture(work, a_label("empty"), events=[an_event("0001… joined default"), an_event("x", "loss")])
