"""What a world needs of the machines it runs. Owns the build: which classes stand for the protocol.

The default build is the product's; `mutants` has others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from rvq.core.chronicle import Kept
from rvq.core.fanout import FanoutMachine
from rvq.core.machine import Machine
from rvq.core.observer import ObserverMachine
from rvq.core.receiver import ReceiverMachine
from rvq.core.recorder import RecorderMachine
from rvq.core.sealing import SealingMachine
from rvq.core.sender import SenderMachine
from rvq.core.stats import Stats
from rvq.core.taken import Taken
from rvq.core.tap import TapMachine


class StartedMessage(Protocol):
    """What a receiver's machine hands out: the message, and how its receiver came to own it."""

    @property
    def sender(self) -> int: ...
    @property
    def sequence(self) -> int: ...
    @property
    def group(self) -> str: ...
    @property
    def key(self) -> str | bytes | None: ...
    @property
    def body(self) -> Any: ...
    @property
    def lane_asked_at(self) -> float | None: ...
    @property
    def attempt(self) -> int: ...
    @property
    def due_at(self) -> float | None: ...
    @property
    def expires_at(self) -> float | None: ...


class SendingEnd(Machine, Protocol):
    """A sender's machine."""

    events: list[str]

    stats: Stats

    @property
    def has_room(self) -> bool: ...
    @property
    def all_done(self) -> bool: ...
    @property
    def undone(self) -> int: ...
    @property
    def waiting_for(self) -> str | None: ...
    def submit(
        self,
        now: float,
        body: Any,
        *,
        key: str | bytes | None = None,
        delay: float | None = None,
        ttl: float | None = None,
        urgent: bool = False,
    ) -> None: ...
    def flush(self, now: float) -> None: ...
    def close(self, now: float) -> None: ...
    def is_done(self, group: str, sequence: int) -> bool: ...


class ReceivingEnd(Machine, Protocol):
    """A receiver's machine."""

    events: list[str]
    stats: Stats
    leaving: bool

    @property
    def ready(self) -> bool: ...
    @property
    def left(self) -> bool: ...
    def take(self, now: float, max: int) -> list[Any]: ...
    def acknowledge(self, now: float, message: Any) -> None: ...
    def retry(self, now: float, message: Any, delay: float = 0.0) -> None: ...
    def reject(self, now: float, message: Any, reason: str = "") -> bool: ...
    def leave(self, now: float) -> None: ...
    def may_start(self, now: float, stream: int, sequence: int) -> bool: ...


class TappingEnd(Machine, Protocol):
    """A tap's machine."""

    events: list[str]
    stats: Stats

    @property
    def ready(self) -> bool: ...
    @property
    def left(self) -> bool: ...
    def take(self, now: float, max: int) -> list[Any]: ...
    def leave(self, now: float) -> None: ...


class RecordingEnd(Machine, Protocol):
    """A recorder's machine."""

    events: list[str]
    stats: Stats

    @property
    def ready(self) -> bool: ...
    @property
    def left(self) -> bool: ...
    def take(self, now: float, most: int) -> list[Taken]: ...
    def stored(self, now: float, taken: Iterable[Taken]) -> None: ...
    def history(self) -> list[Kept]: ...
    def leave(self, now: float) -> None: ...
    def may_start(self, now: float, stream: int, sequence: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class Build:
    """The classes that a world runs."""

    sender: Callable[..., SendingEnd] = SenderMachine
    receiver: Callable[..., ReceivingEnd] = ReceiverMachine
    tap: Callable[..., TappingEnd] = TapMachine
    recorder: Callable[..., RecordingEnd] = RecorderMachine
    sealing: Callable[..., SealingMachine] | None = None
    """What stands around each of them on a sealed bus; None: frames are plain."""
    observer: Callable[..., ObserverMachine] = ObserverMachine
    fanout: Callable[..., FanoutMachine] | None = None
    """What stands around each of them where there is no multicast; None: there is."""
    flooded: bool = False
    """Is there a stranger on the bus who says what he likes?"""


PRODUCT = Build()
"""The machines as they ship."""

FLOODED = Build(flooded=True)
"""The same with a stranger on a bus that is not sealed."""

SEALED = Build(sealing=SealingMachine)
"""The same on a sealed bus."""

FANNED = Build(fanout=FanoutMachine)
"""The same without multicast."""
