"""rvq: a work queue with no broker. Senders multicast, and exactly one receiver of each group handles each message."""

from rvq.aio.receiver import Receiver
from rvq.aio.sender import Sender
from rvq.bus import Bus
from rvq.core.stats import Stats
from rvq.core.table import TableView
from rvq.errors import BadLabel, BadMessage, BusError, Closed, MessageTooLarge, NotDelivered, RvqError
from rvq.message import Message

__all__ = [
    "BadLabel",
    "BadMessage",
    "Bus",
    "BusError",
    "Closed",
    "Message",
    "MessageTooLarge",
    "NotDelivered",
    "Receiver",
    "RvqError",
    "Sender",
    "Stats",
    "TableView",
]
