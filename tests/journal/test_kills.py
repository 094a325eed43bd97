"""Real processes and real files: SIGKILL at random moments, and what was confirmed is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

from rvq.journal import Journal, JournalReader, verify
from tests.journal.samples import number_of
from tests.journal.writing import LABELS

ROUNDS = 7


def write_until_killed(root: Path, recorder: int, lines: int) -> dict[str, int]:
    """What a recorder said was confirmed. It is killed while it goes on, after about so many commits."""
    command = [sys.executable, "-m", "tests.journal.writing", str(root), str(recorder)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        said += process.stdout.read().splitlines(keepends=True)
    last = [line for line in said if line.endswith(b"\n")][-1]
    return dict(zip(LABELS, map(int, last.split()), strict=True))


def test_what_was_confirmed_before_a_kill_is_there_in_order_once(tmp_path: Path) -> None:
    random = Random(7)
    confirmed = {
        recorder: write_until_killed(tmp_path, recorder, random.randrange(1, 40)) for recorder in range(1, ROUNDS + 1)
    }
    with Journal.open(tmp_path, group="journal", recorder=1000):
        pass
    assert verify(tmp_path).findings == []
    reader = JournalReader(tmp_path)
    for label in LABELS:
        heads = reader.head(label)
        assert set(heads) == {f"{recorder:016x}" for recorder in confirmed}
        for recorder, counts in confirmed.items():
            found = [number_of(entry) for entry in reader.entries(label, heads[f"{recorder:016x}"])]
            assert found == list(range(1, len(found) + 1))
            assert len(found) >= counts[label]
