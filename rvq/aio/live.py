"""Who sends to a label now. Owns listening for a moment; says nothing itself."""

from __future__ import annotations

import asyncio
from typing import Any

from rvq.bus import Bus
from rvq.errors import WireError
from rvq.transport.udp import Endpoint
from rvq.wire.codec import decode_control, peek
from rvq.wire.frames import SenderAlive, SenderGoodbye, label_tag


async def live_streams(label: str, bus: Bus) -> set[int]:
    """The ids of the senders that are heard within `expiry`, in which each of them speaks several times."""
    heard: set[int] = set()
    tag = label_tag(label)

    def on_datagram(datagram: bytes, _source: Any, _size: int = 0) -> None:
        try:
            frame = decode_control(datagram) if peek(datagram)[1] == tag else None
        except WireError:
            return
        if isinstance(frame, SenderAlive) and frame.label == label:
            heard.add(frame.source)
        elif isinstance(frame, SenderGoodbye) and frame.label == label:
            heard.discard(frame.source)

    endpoint = Endpoint.open(bus, label, data=False)
    try:
        endpoint.start(asyncio.get_running_loop(), on_datagram, lambda: None)
        await asyncio.sleep(bus.expiry)
    finally:
        endpoint.close()
    return heard
