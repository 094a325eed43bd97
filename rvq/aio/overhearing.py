"""Who else speaks on a bus, and with which key: for the doctor. Owns listening where everyone introduces itself.

Opens nothing and says nothing: whether a datagram is sealed can be seen, and the id of its key stands in it. It waits,
so it is for programs without a loop.
"""

from __future__ import annotations

import select
import socket
import time

from rvq.bus import Bus
from rvq.core.about import ABOUT_S
from rvq.errors import WireError
from rvq.limits import STRANGERS_NAMED_MAX
from rvq.transport import multicast
from rvq.wire.codec import peek
from rvq.wire.keys import Keys
from rvq.wire.seal import is_sealed, read_header

LISTEN_S = 1.5 * ABOUT_S
"""In this time everybody has introduced itself once, unless there are hundreds of them."""
DATAGRAMS_MAX = 2_000
"""Then it has heard enough, whoever floods."""
_BYTES_MAX = 65_536

PLAIN = b""
"""Instead of a key's id: it is not sealed."""


def overhear(bus: Bus, within_s: float = LISTEN_S) -> dict[tuple[str, int], bytes]:
    """The id of the key by the address of whoever spoke. BusError if nobody can be listened to."""
    interface = multicast.resolve_interface(bus.interface)
    found: dict[tuple[str, int], bytes] = {}
    with multicast.open_multicast(bus, interface, bus.directory_address) as hearing:
        deadline = time.monotonic() + within_s
        for _ in range(DATAGRAMS_MAX):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([hearing], [], [], left)[0]:
                break
            _note(found, hearing)
    return found


def _note(found: dict[tuple[str, int], bytes], hearing: socket.socket) -> None:
    datagram, source = hearing.recvfrom(_BYTES_MAX)
    key = key_of(datagram)
    if key is not None and (source in found or len(found) < STRANGERS_NAMED_MAX):
        found[source] = key


def key_of(datagram: bytes) -> bytes | None:
    """The id of the key that it is sealed with; PLAIN if it is a plain frame; None if it is none of ours."""
    try:
        if is_sealed(datagram):
            return read_header(datagram).key_id
        peek(datagram)
    except WireError:
        return None
    return PLAIN


def others(found: dict[tuple[str, int], bytes], keys: Keys | None) -> tuple[int, list[str]]:
    """How many speak so that we understand them; and what is wrong with the others, with one of them to look at."""
    ours = {PLAIN} if keys is None else set(keys.live)
    foreign: dict[bytes, list[str]] = {}
    for (host, port), key in sorted(found.items()):
        if key not in ours:
            foreign.setdefault(key, []).append(f"{host}:{port}")
    faults = [f"{len(places)} ({places[0]}) {_fault(key, keys)}" for key, places in foreign.items()]
    return sum(key in ours for key in found.values()), faults


def _fault(key: bytes, keys: Keys | None) -> str:
    if key == PLAIN:
        return "with no key: give them the key file, or another port"
    if keys is None:
        return f"with key {key.hex()}: take their key file (--key-file), or another port"
    return f"with key {key.hex()}, which is not in our key file: compare `rvq key ls` on both hosts"
