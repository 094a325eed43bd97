"""A process that writes a journal until it is killed: `python -m tests.journal.writing DIR RECORDER`.

Says on standard output, for each label, up to which number it is confirmed: what it said is the promise.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from random import Random

from rvq.journal import Journal
from tests.journal.samples import HOUR, NOW, entry

LABELS = ("work", "orders.eu")


def main(root: Path, recorder: int) -> None:
    random = Random(recorder)
    journal = Journal.open(root, group="journal", recorder=recorder, segment_bytes=300_000)
    counts = dict.fromkeys(LABELS, 0)
    now = NOW
    while True:
        now += random.choice([0, 0, 0, 0, 0, HOUR / 20])
        for label in LABELS:
            for _ in range(random.randrange(1, 4)):
                counts[label] += 1
                journal.writer(label).add(entry(counts[label], size=random.choice([8, 200, 3000, 60_000])))
        journal.commit(now, sync=True)
        # One write, so that it is said as a whole or not at all.
        os.write(1, (" ".join(str(counts[label]) for label in LABELS) + "\n").encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
