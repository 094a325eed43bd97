"""Bookings in order and exactly once, whatever is killed: python examples/accounts.py

Each account is a key, so its bookings are handled one by one, in the order sent. Each booking changes the balance in a
transaction of the ledger, which also marks the message as done: handled again, it is found done. To show it, one of the
three workers is killed in the middle of the work.
"""

import asyncio
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import rvq

ACCOUNTS, BOOKINGS = ["alice", "bob", "carol"], 300


async def book(message: rvq.Message) -> None:
    """The handler. If its process dies at any moment, all of this has happened, or nothing."""
    async with message.transaction() as tx:
        await tx.execute(
            "UPDATE accounts SET balance = balance + ?, bookings = bookings + 1 WHERE name = ?",
            (message.body, message.key),
        )


async def work(file: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await rvq.consume("bookings", book, ledger=rvq.Ledger.sqlite(file), concurrency=4, stop=stop)


async def main(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER, bookings INTEGER)")
        database.executemany("INSERT INTO accounts VALUES (?, 0, 0)", [(name,) for name in ACCOUNTS])
    workers = [subprocess.Popen([sys.executable, __file__, str(file)]) for _ in range(3)]
    async with rvq.Sender("bookings") as sender:
        while not sender.tables or len(sender.tables["default"].members) < 3:
            await asyncio.sleep(0.05)
        for number in range(BOOKINGS):
            await sender.send(number, key=ACCOUNTS[number % len(ACCOUNTS)])
            if number == BOOKINGS // 2:
                workers[0].kill()
            await asyncio.sleep(0.002)
    for worker in workers:
        worker.terminate()
        worker.wait()
    with closing(sqlite3.connect(file)) as database:
        for name, balance, bookings in database.execute("SELECT * FROM accounts ORDER BY name"):
            print(f"{name}: {bookings} bookings, balance {balance}")


if len(sys.argv) > 1:
    asyncio.run(work(sys.argv[1]))
else:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder, "bank.db")))
