"""A process that handles messages under a ledger, and can be held at any step: python -m tests.ledger.worker PLACE …

Says `at STEP` and waits for a line on its stdin; says `done N` or `already N` for each message, and `end`.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from typing import Any

from rvq.errors import AlreadyDone
from rvq.ledger.ledger import Ledger
from rvq.ledger.mark import Mark
from rvq.ledger.sqlite_file import SqliteFile
from tests.ledger.places import Place, find, mark

STEPS = ("before mark", "after mark", "after write", "before commit", "after commit")


class Worker:
    def __init__(self, place: Place, hold_at: str | None) -> None:
        self._place = place
        self._hold_at = hold_at

    def reach(self, step: str) -> None:
        if step == self._hold_at:
            print("at", step, flush=True)
            input()

    def watch_commits(self) -> None:
        """So that it can be held at the driver's very commit, and not only at the end of the block."""
        self._watch(SqliteFile, "commit")
        if self._place.kind == "postgres":
            from rvq.ledger.postgres_transaction import PostgresTransaction

            self._watch(PostgresTransaction, "_commit_blocking")
            plain = PostgresTransaction._commit

            async def commit(transaction: Any, block: Any) -> None:
                self.reach("before commit")
                await plain(transaction, block)
                self.reach("after commit")

            PostgresTransaction._commit = commit  # type: ignore[method-assign]

    def _watch(self, owner: type, name: str) -> None:
        plain: Callable[..., None] = getattr(owner, name)

        def commit(*words: Any) -> None:
            self.reach("before commit")
            plain(*words)
            self.reach("after commit")

        setattr(owner, name, commit)

    async def handle(self, ledger: Ledger, message: Mark) -> None:
        self.reach("before mark")
        async with ledger.transaction(message) as tx:
            self.reach("after mark")
            await tx.execute(self._place.insert, (message.sequence,))
            self.reach("after write")

    def handle_blocking(self, ledger: Ledger, message: Mark) -> None:
        self.reach("before mark")
        with ledger.transaction(message) as tx:
            self.reach("after mark")
            tx.execute(self._place.insert, (message.sequence,))
            self.reach("after write")


async def work(worker: Worker, place: Place, how: str, messages: list[Mark]) -> None:
    async with place.ledger() as ledger:
        for message in messages:
            try:
                if how == "async":
                    await worker.handle(ledger, message)
                else:
                    await asyncio.to_thread(worker.handle_blocking, ledger, message)
            except AlreadyDone:
                print("already", message.sequence, flush=True)
            else:
                print("done", message.sequence, flush=True)
    print("end", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("place")
    parser.add_argument("how", choices=["async", "sync"])
    parser.add_argument("--hold-at", choices=STEPS)
    parser.add_argument("--messages", type=int, default=1)
    words = parser.parse_args()
    place = find(words.place)
    worker = Worker(place, words.hold_at)
    worker.watch_commits()
    asyncio.run(work(worker, place, words.how, [mark(number + 1) for number in range(words.messages)]))


if __name__ == "__main__":
    main()
