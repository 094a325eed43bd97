"""In which order things are measured, round after round."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def in_turn(things: Sequence[T], round: int) -> list[T]:
    """The same in another order, so that over the rounds nobody always runs after the same neighbour."""
    return Random(round).sample(things, len(things))
