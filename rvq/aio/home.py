"""The process that ends live in: its host's name and its id. Owns asking the system."""

from __future__ import annotations

import os
import socket

from rvq.core.about import Home
from rvq.limits import LABEL_BYTES_MAX


def here() -> Home:
    """What ends of this process say of it. Asked each time: a process may fork."""
    host = "".join(filter(str.isprintable, socket.gethostname()))
    return Home(host.encode(errors="replace")[:LABEL_BYTES_MAX].decode(errors="ignore"), os.getpid())
