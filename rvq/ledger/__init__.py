"""Effects exactly once: what a handler writes and the mark of its message are committed together, or neither is.

Stands alone: knows labels, groups and numbers, and nothing of streams, leases or sockets. Drivers (`sqlite3`, psycopg)
are imported when a ledger of theirs is made.
"""

from __future__ import annotations

from rvq.errors import AlreadyDone, LedgerError
from rvq.ledger.ledger import Ledger, Transaction
from rvq.ledger.mark import Mark

__all__ = ["AlreadyDone", "Ledger", "LedgerError", "Mark", "Transaction"]
