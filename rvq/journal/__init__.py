"""The journal on disk: what was heard on a bus, appended, synced, found again. No sockets, no tasks, no clock.

Start at `Journal` to write and at `JournalReader` to read. The format is in docs/journal.md.
"""

from rvq.journal.blocks import Block, Columns
from rvq.journal.compare import Compared, Ids, compare
from rvq.journal.entries import Entry, EntryKind
from rvq.journal.expire import expire
from rvq.journal.journal import Journal
from rvq.journal.places import SegmentName
from rvq.journal.reader import JournalReader
from rvq.journal.recovery import recover
from rvq.journal.storage import File, OsStorage, Storage
from rvq.journal.verify import Finding, Verified, verify
from rvq.journal.writer import Batch, Position, Writer

__all__ = [
    "Batch",
    "Block",
    "Columns",
    "Compared",
    "Entry",
    "EntryKind",
    "File",
    "Finding",
    "Ids",
    "Journal",
    "JournalReader",
    "OsStorage",
    "Position",
    "SegmentName",
    "Storage",
    "Verified",
    "Writer",
    "compare",
    "expire",
    "recover",
    "verify",
]
