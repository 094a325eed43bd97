"""`rvq demo`: a sender and three receivers on this machine; one joins, one is killed, and everything is counted.

Owns the play and its words. The actors are the commands that a user would run, as processes of their own, on a port of
their own unless one is named: the demo meets no other bus, and leaves nothing running.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import socket
import sys
import time
from collections.abc import Callable

from rvq.cli.command import ALL_DONE, FAULT, reachable_bus
from rvq.cli.tally import judge, table_of

MESSAGES = 20_000
RATE = 4_000
"""Per second. Slow for rvq, but the play must last long enough to follow."""

JOINS_AT, KILLED_AT = 0.25, 0.6
"""How much is handled when the third receiver joins, and when another is killed."""

GIVE_UP_S = 60.0
"""The play takes ten seconds. Whoever is still here then is stuck."""

ORPHAN_S = 30.0
"""If the demo itself is killed, its receivers leave after so long without a message."""

_PLACE = re.compile(r"index \d+ of (\d+)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The demo has no options besides those of the bus; unless a port is named, it takes a free one."""


def run(args: argparse.Namespace) -> int:
    """0 if nothing was lost, and nothing done twice but what the killed one did last."""
    named = reachable_bus(args)
    port = named.port if args.port is not None or os.environ.get("RVQ_PORT") else free_port()
    bus = ["--interface", named.interface, "--port", str(port), "--address", named.address]
    if isinstance(named.key, str):
        bus += ["--key-file", named.key]
    print(
        f"rvq demo: a sender and three receivers on port {port} of {named.interface}, each a process of its own. No"
        " broker.\n"
    )
    return asyncio.run(_run(Play(bus, tell=_Story().tell)))


async def _run(play: Play) -> int:
    from rvq.cli.signals import calling_on_signals

    task = asyncio.current_task()
    assert task is not None
    with calling_on_signals(task.cancel):
        try:
            async with asyncio.timeout(GIVE_UP_S):
                return await play.run()
        except TimeoutError:
            print(f"\nNot over after {GIVE_UP_S:g} s: something is wrong. See `rvq doctor`.")
        except Failed as error:
            print(f"\n{error}")
        except asyncio.CancelledError:
            print("\nInterrupted.")
        finally:
            await play.close()
    return FAULT


def free_port() -> int:
    """A UDP port that nobody uses, below those that the kernel hands out."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                sock.bind(("", port))
            except OSError:
                continue
        return port


class _Story:
    """Lines with the time before them."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def tell(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {text}", flush=True)


class Failed(Exception):
    """An actor left the stage on its own."""


class Actor:
    """One command as a process of its own. Collects what it prints."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, changed: Callable[[], None]) -> None:
        self.name = name
        self.process = process
        self.lines: list[str] = []
        self.words: list[str] = []
        self._changed = changed
        self._is_killed = False
        assert process.stdout is not None and process.stderr is not None
        self._reading = asyncio.gather(
            self._read(process.stdout, self.lines), self._read(process.stderr, self.words), self._wait()
        )

    @property
    def members(self) -> int:
        """How many receivers there are by its own words; 0 if it has not said."""
        return next((int(found[1]) for text in reversed(self.words) if (found := _PLACE.search(text))), 0)

    @property
    def has_failed(self) -> bool:
        """It ended, and nobody killed it."""
        return not self._is_killed and bool(self.process.returncode)

    async def ended(self) -> int:
        """Its exit code, when all that it printed is collected."""
        return (await self._reading)[2]

    def kill(self) -> None:
        self._is_killed = True
        if self.process.returncode is None:
            self.process.kill()

    async def _wait(self) -> int:
        code = await self.process.wait()
        self._changed()
        return code

    async def _read(self, stream: asyncio.StreamReader, lines: list[str]) -> None:
        async for line in stream:
            if line.endswith(b"\n"):  # a killed one may leave half a line
                lines.append(line[:-1].decode(errors="replace"))
                self._changed()


class Play:
    """The scenes, in order. Each waits for what happens, not for the clock."""

    def __init__(self, bus: list[str], tell: Callable[[str], None]) -> None:
        self._bus = bus
        self._tell = tell
        self._actors: list[Actor] = []
        self._receivers: dict[str, Actor] = {}
        self._happened = asyncio.Event()

    async def run(self) -> int:
        await self._two_listen()
        sender = await self._sending()
        await self._one_joins()
        await self._one_is_killed()
        return await self._count(sender)

    async def close(self) -> None:
        """Nobody is left behind."""
        for actor in self._actors:
            actor.kill()
        for actor in self._actors:
            await actor.ended()

    async def _two_listen(self) -> None:
        self._tell("receivers A and B start: rvq-listen demo")
        await self._listen("A")
        await self._listen("B")
        await self._until(lambda: self._all_say(2))
        self._tell("they have found each other: each handles every second message")

    async def _sending(self) -> Actor:
        self._tell(f"the sender starts: {MESSAGES:,} messages, {RATE:,} a second: seq {MESSAGES} | rvq-send demo")
        sender = await self._start("sender", "rvq.cli.send", "demo", "--rate", str(RATE))
        assert sender.process.stdin is not None
        sender.process.stdin.write(b"".join(b"%d\n" % number for number in range(1, MESSAGES + 1)))
        sender.process.stdin.close()
        return sender

    async def _one_joins(self) -> None:
        await self._until(lambda: self._handled() >= MESSAGES * JOINS_AT)
        self._tell(f"{self._handled():,} are handled. Receiver C starts, too")
        await self._listen("C")
        await self._until(lambda: self._all_say(3) and bool(self._receivers["C"].lines))
        self._tell("C is in: each handles every third message now. Nobody had to be told, and nothing stopped")

    async def _one_is_killed(self) -> None:
        await self._until(lambda: self._handled() >= MESSAGES * KILLED_AT)
        self._tell(f"{self._handled():,} are handled. Receiver B is killed (SIGKILL): it cannot say goodbye")
        self._receivers["B"].kill()
        await self._receivers["B"].ended()
        await self._until(lambda: all(self._receivers[name].members == 2 for name in "AC"))
        self._tell("A and C miss it, and take over what it has left undone")

    async def _count(self, sender: Actor) -> int:
        code = await sender.ended()
        self._tell(f"the sender is done: {sender.words[-1] if sender.words else 'without a word'}")
        for name in "AC":
            self._receivers[name].process.terminate()
        for name in "AC":
            await self._receivers[name].ended()
        self._tell("A and C leave\n")
        handled = {name: [int(line) for line in actor.lines] for name, actor in self._receivers.items()}
        verdict = judge(MESSAGES, handled, killed="B")
        print(table_of(handled, killed="B"))
        print(verdict)
        return ALL_DONE if code == 0 and verdict.is_good else FAULT

    async def _listen(self, name: str) -> None:
        self._receivers[name] = await self._start(name, "rvq.cli.listen", "demo", "--idle", f"{ORPHAN_S:g}")

    async def _start(self, name: str, module: str, *arguments: str) -> Actor:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", module, *arguments, *self._bus),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if not name.startswith("RVQ_")},
            start_new_session=True,  # Ctrl-C is for the demo, which ends them itself
        )
        actor = Actor(name, process, self._happened.set)
        self._actors.append(actor)
        return actor

    def _handled(self) -> int:
        return sum(len(actor.lines) for actor in self._receivers.values())

    def _all_say(self, members: int) -> bool:
        return all(actor.members == members for actor in self._receivers.values())

    async def _until(self, is_so: Callable[[], bool]) -> None:
        """Waits for what the actors print. One that fails is the end of the play."""
        while not is_so():
            self._happened.clear()
            for actor in self._actors:
                if actor.has_failed:
                    raise Failed(f"{actor.name} ended on its own: {' / '.join(actor.words[-3:])}")
            await self._happened.wait()
