"""A farm that shrinks pictures: python examples/thumbnails.py

Two processes share the work, each with three plain functions in threads (`rvq.consume(…, concurrency=3)`). The pictures
are made here, so that it runs as it is; a message names a file, which all of them can read. Stop a worker with SIGTERM.
"""

import asyncio
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import rvq

PICTURES, SIDE, SHRINK = 24, 64, 8


def make_picture(path: Path, number: int) -> None:
    """A grey picture of some pattern, as a PGM file: a header, and a byte for each point."""
    points = bytes((x * (number + 1) ^ y) % 256 for y in range(SIDE) for x in range(SIDE))
    path.write_bytes(b"P5 %d %d 255\n" % (SIDE, SIDE) + points)


def shrink(message: rvq.Message) -> None:
    """The handler. A plain function, so it runs in a thread, and may block."""
    path = Path(message.body)
    header, points = path.read_bytes().split(b"\n", 1)
    width, height = map(int, header.split()[1:3])
    small = bytearray()
    for top in range(0, height, SHRINK):
        for left in range(0, width, SHRINK):
            rows = (points[y * width + left : y * width + left + SHRINK] for y in range(top, top + SHRINK))
            small.append(sum(map(sum, rows)) // SHRINK**2)
    made = path.with_suffix(".small.pgm")
    made.write_bytes(b"P5 %d %d 255\n" % (width // SHRINK, height // SHRINK) + small)


async def work() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await rvq.consume("pictures", shrink, concurrency=3, stop=stop)


async def main() -> None:
    workers = [subprocess.Popen([sys.executable, __file__, "work"]) for _ in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        async with rvq.Sender("pictures") as sender:
            for number in range(PICTURES):
                path = Path(folder, f"{number}.pgm")
                make_picture(path, number)
                await sender.send(str(path))
            # Leaving the block waits until every picture is done.
        made = [path.stat().st_size for path in Path(folder).glob("*.small.pgm")]
    for worker in workers:
        worker.terminate()
        worker.wait()
    print(f"{len(made)} pictures of {SIDE}x{SIDE} shrunk to {SIDE // SHRINK}x{SIDE // SHRINK}")


asyncio.run(work() if sys.argv[1:] == ["work"] else main())
