"""Who is on the bus already: heard where everyone introduces itself. Owns listening for a moment; says nothing."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field

from rvq.bus import Bus
from rvq.core.strangers import OTHER_KEY, PLAIN_HERE_SEALED, SEALED_HERE_PLAIN
from rvq.errors import WireError
from rvq.transport import multicast
from rvq.transport.multicast import Interface
from rvq.wire.codec import decode_control
from rvq.wire.frames import About
from rvq.wire.keys import Keys
from rvq.wire.seal import SealKind, cipher_for, is_sealed, read_header, unseal

LISTEN_S = 1.5
"""Everyone introduces itself each second, or more seldom where there are hundreds."""
HEARD_MAX = 1000
"""Of those who are told apart; the rest is not counted."""
_DATAGRAM_BYTES_MAX = 65_536


@dataclass(slots=True)
class Bystanders:
    """Those whom we understand, by id, as (host, is a sender); and why others are none of ours, by address."""

    ends: dict[int, tuple[str, bool]] = field(default_factory=dict)
    strangers: dict[str, str] = field(default_factory=dict)

    def hear(self, datagram: bytes, address: str, bus: Bus, keys: Keys | None) -> None:
        fault = self._fault(datagram, bus, keys)
        if fault is not None and len(self.strangers) < HEARD_MAX:
            self.strangers.setdefault(address, fault)

    def _fault(self, datagram: bytes, bus: Bus, keys: Keys | None) -> str | None:
        """What is wrong with its sender; None if nothing, or if it is no word of this protocol."""
        sealed = is_sealed(datagram)
        if sealed and keys is None:
            return SEALED_HERE_PLAIN
        try:
            if not sealed:
                self._note(decode_control(datagram), unless=keys is not None)
                return PLAIN_HERE_SEALED if keys is not None else None
            assert keys is not None
            header = read_header(datagram)
            key = keys.live.get(header.key_id)
            if key is None:
                return OTHER_KEY.format(header.key_id.hex())
            frame = unseal(cipher_for(key, header.salt, bus.name), datagram)
            if frame is not None and header.kind == SealKind.FRAME:
                self._note(decode_control(frame))
        except WireError:
            pass
        return None

    def _note(self, frame: object, *, unless: bool = False) -> None:
        if isinstance(frame, About) and not unless and len(self.ends) < HEARD_MAX:
            host = "".join(character if character.isprintable() else "?" for character in frame.host)
            self.ends[frame.source] = (host, not frame.group)

    @property
    def hosts(self) -> list[str]:
        return sorted({host for host, _ in self.ends.values()})

    @property
    def senders(self) -> int:
        return sum(is_sender for _, is_sender in self.ends.values())

    @property
    def receivers(self) -> int:
        return len(self.ends) - self.senders


async def listen(bus: Bus, interface: Interface, keys: Keys | None, seconds: float = LISTEN_S) -> Bystanders:
    """Who introduces itself in that time. BusError if that cannot be listened to."""
    heard = Bystanders()
    loop = asyncio.get_running_loop()
    with multicast.open_multicast(bus, interface, bus.directory_address) as sock:
        loop.add_reader(sock, _drain, sock, heard, bus, keys)
        try:
            await asyncio.sleep(seconds)
        finally:
            loop.remove_reader(sock)
    return heard


def _drain(sock: socket.socket, heard: Bystanders, bus: Bus, keys: Keys | None) -> None:
    try:
        datagram, source = sock.recvfrom(_DATAGRAM_BYTES_MAX)
    except OSError:
        return
    heard.hear(datagram, source[0], bus, keys)
