"""A doctor's sockets: what is said goes out, and what is heard is handed over. Owns the ways that words go."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from enum import Enum
from functools import partial

from rvq.aio.checkup.words import Speech, Stranger, Word
from rvq.bus import Bus
from rvq.errors import BusError
from rvq.transport import multicast
from rvq.transport.multicast import Interface

Place = multicast.Place

DATAGRAM_BYTES_MAX = 65_536
PER_TURN_MAX = 64
"""Datagrams taken from a socket before others have their turn."""


class Way(Enum):
    """The two that frames go."""

    MULTICAST = "multicast"
    UNICAST = "unicast"


OnWord = Callable[[Word, Place, Way, int], None]
"""The word, where it comes from, by which way, and how many bytes it had."""
OnStranger = Callable[[Place, str], None]
"""Where it was heard, and why it is none of ours."""


class Post:
    """As everyone on a bus: one socket that hears multicast, one from which all is said. And a door, at the bus's own
    port, for who is looked for by address."""

    def __init__(self, bus: Bus, interface: Interface, speech: Speech) -> None:
        """BusError if a socket cannot be had."""
        self.speech = speech
        self.everyone: Place = (bus.doctors_address, bus.port)
        self.error: OSError | None = None
        """The last one that the kernel answered with when something was said."""
        with ExitStack() as stack:
            self.hearing = stack.enter_context(multicast.open_multicast(bus, interface, bus.doctors_address))
            self.speaking = stack.enter_context(multicast.open_unicast(bus, interface))
            self._door: socket.socket | None = None
            with suppress(BusError):  # somebody else has that port: then we are found by multicast only
                self._door = stack.enter_context(multicast.open_door(bus, interface))
            self._closing = stack.pop_all()

    def start(self, on_word: OnWord, on_stranger: OnStranger) -> None:
        loop = asyncio.get_running_loop()
        ways = {self.hearing: Way.MULTICAST, self.speaking: Way.UNICAST}
        if self._door is not None:
            ways[self._door] = Way.UNICAST
        for sock, way in ways.items():
            loop.add_reader(sock, partial(self._drain, sock, way, on_word, on_stranger))
            self._closing.callback(loop.remove_reader, sock)

    def say(self, word: Word, to: Place | None = None, size: int = 0, *, whole: bool = False) -> bool:
        """To one, or to everyone. False if it did not even leave; `error` says why. whole: never cut on its way."""
        datagram = self.speech.say(word, size)
        try:
            if whole:
                multicast.keep_whole(self.speaking, True)
            try:
                self.speaking.sendto(datagram, to or self.everyone)
            finally:
                if whole:
                    multicast.keep_whole(self.speaking, False)
        except OSError as error:
            self.error = error
            return False
        return True

    @property
    def place(self) -> Place:
        """Where unicast to us goes."""
        place: Place = self.speaking.getsockname()
        return place

    def close(self) -> None:
        self._closing.close()

    def _drain(self, sock: socket.socket, way: Way, on_word: OnWord, on_stranger: OnStranger) -> None:
        for _ in range(PER_TURN_MAX):
            try:
                datagram, source = sock.recvfrom(DATAGRAM_BYTES_MAX)
            except OSError:  # nothing more, or the network's word on what we said: silence tells that, too
                return
            word = self.speech.hear(datagram)
            if isinstance(word, Stranger):
                on_stranger(source, word.fault)
            elif word is not None:
                on_word(word, source, way, len(datagram))
