"""rvq: a work queue with no broker. Senders multicast, and exactly one receiver of each group handles each message."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rvq.aio import admin as admin
    from rvq.aio import metrics as metrics
    from rvq.aio.consume import consume
    from rvq.aio.missed import catch_up
    from rvq.aio.receiver import Receiver
    from rvq.aio.recorder import Recorder
    from rvq.aio.replay import Chosen, offer_again, replay
    from rvq.aio.sender import Sender
    from rvq.bus import Bus
    from rvq.core.retries import Backoff
    from rvq.core.stats import Stats
    from rvq.core.table import TableView
    from rvq.dead import DeadLetter
    from rvq.errors import (
        AlreadyDone,
        BadArgument,
        BadLabel,
        BadMessage,
        BusError,
        Closed,
        JournalDamaged,
        JournalError,
        JournalExpired,
        LedgerError,
        MessageTooLarge,
        NotDelivered,
        OrderFailed,
        RvqError,
    )
    from rvq.ledger.ledger import Ledger
    from rvq.message import Message

__all__ = [
    "AlreadyDone",
    "Backoff",
    "BadArgument",
    "BadLabel",
    "BadMessage",
    "Bus",
    "BusError",
    "Chosen",
    "Closed",
    "DeadLetter",
    "JournalDamaged",
    "JournalError",
    "JournalExpired",
    "Ledger",
    "LedgerError",
    "Message",
    "MessageTooLarge",
    "NotDelivered",
    "OrderFailed",
    "Receiver",
    "Recorder",
    "RvqError",
    "Sender",
    "Stats",
    "TableView",
    "admin",
    "catch_up",
    "consume",
    "metrics",
    "offer_again",
    "replay",
]

_HOMES = {
    "Backoff": "rvq.core.retries",
    "DeadLetter": "rvq.dead",
    "Chosen": "rvq.aio.replay",
    "consume": "rvq.aio.consume",
    "catch_up": "rvq.aio.missed",
    "offer_again": "rvq.aio.replay",
    "replay": "rvq.aio.replay",
    "Bus": "rvq.bus",
    "Ledger": "rvq.ledger.ledger",
    "Message": "rvq.message",
    "Receiver": "rvq.aio.receiver",
    "Recorder": "rvq.aio.recorder",
    "Sender": "rvq.aio.sender",
    "Stats": "rvq.core.stats",
    "TableView": "rvq.core.table",
}

_MODULES = {"admin": "rvq.aio.admin", "metrics": "rvq.aio.metrics"}
"""Public names that are modules."""


def __getattr__(name: str) -> object:
    """Public names are imported when they are used first: a command must be able to start without asyncio."""
    if name not in __all__:
        raise AttributeError(f"module 'rvq' has no attribute {name!r}")
    if name in _MODULES:
        value: object = import_module(_MODULES[name])
    else:
        value = getattr(import_module(_HOMES.get(name, "rvq.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
