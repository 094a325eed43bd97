"""How far the next batch of a stream goes, and what its tasks are. Owns limits and shares; positions are `chains`'.

Each chain gets an equal share of what a batch may have, and what one does not use the others get. It moves by at least
one block, so nothing starves behind a limit that is smaller than a block.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final

from rvq.journal import JournalReader, Position
from rvq.limits import MIB
from rvq.spark.chains import Chains, Slice
from rvq.spark.offsets import Offsets

TASK_BYTES: Final = 32 * MIB
"""What one task reads, about: some hundred thousand messages, a second or less."""


def next_end(
    reader: JournalReader,
    chains: Chains,
    start: Offsets,
    end: Offsets,
    max_rows: float = inf,
    max_bytes: float = inf,
) -> Offsets:
    """From `start` towards `end`, as far as a batch may go."""
    found = dict(end)
    if max_rows == max_bytes == inf:
        return found
    backlog = {chain: chains.slices(chain, start.get(chain), at) for chain, at in end.items()}
    # Those with the least to say first: what they leave over is then known to all that could use it.
    waiting = sorted((chain for chain in end if backlog[chain]), key=lambda chain: sum(s.rows for s in backlog[chain]))
    for place, chain in enumerate(waiting):
        left = len(waiting) - place
        at, rows, size = _take(reader, chains, backlog[chain], max(max_rows / left, 1), max(max_bytes / left, 1))
        found[chain] = at
        max_rows -= rows
        max_bytes -= size
    return found


def _take(
    reader: JournalReader, chains: Chains, slices: list[Slice], max_rows: float, max_bytes: float
) -> tuple[Position, int, int]:
    rows = size = 0
    at = slices[0].start
    for one in slices:
        if rows + one.rows <= max_rows and size + one.size <= max_bytes:
            at, rows, size = one.end, rows + one.rows, size + one.size
            continue
        if rows and (rows >= max_rows or size >= max_bytes):
            break
        cuts = [one.end]
        if max_rows < inf:
            cuts.append(reader.advance(one.label, one.start, int(max_rows - rows) or 1, one.end))
        if max_bytes < inf:
            cuts.append(chains.cut(one, int(max_bytes - size) or 1))
        at = min(cuts, key=lambda cut: cut.position)
        rows, size = rows + at.row - one.start.row, size + at.position - one.start.position
        break
    return at, rows, size


def tasks(chains: Chains, start: Offsets, end: Offsets, least: int, *, to_head: bool = True) -> list[tuple[Slice, ...]]:
    """What lies between, in parts of about one size: each is one task's. At least so many, if there are the blocks.

    to_head: a chain that has no start is read from where it begins; else not at all.
    """
    whole = [
        one
        for chain, at in sorted(end.items())
        if to_head or chain in start
        for one in chains.slices(chain, start.get(chain), at)
    ]
    total = sum(one.size for one in whole)
    if not total:
        return []
    size = max(1, min(TASK_BYTES, -(-total // least)))
    return _packed((piece for one in whole for piece in chains.pieces(one, size)), size)


def _packed(pieces: Iterable[Slice], size: int) -> list[tuple[Slice, ...]]:
    """Small ones together."""
    found: list[list[Slice]] = []
    room = 0
    for piece in pieces:
        if not found or piece.size > room:
            found.append([])
            room = size
        found[-1].append(piece)
        room -= piece.size
    return [tuple(one) for one in found]
