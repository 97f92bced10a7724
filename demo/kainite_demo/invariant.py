"""Watching the target for torn transactions: TPC-B's invariant in one snapshot after another.

A transaction that is applied in part, however briefly, leaves the four sums unequal for whoever
looks just then. So a thread looks as often as it can, each time in one REPEATABLE READ snapshot.

Millions of accounts cannot be summed at each look; a partial index holds those whose balance is
not zero, the others add nothing.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import psycopg
from kainite.errors import DemoError

_PAUSE = 0.05
_INDEX = "CREATE INDEX IF NOT EXISTS kainite_demo_moved ON pgbench_accounts (abalance) WHERE abalance <> 0"
_SUMS = """
    SELECT coalesce((SELECT sum(abalance) FROM pgbench_accounts WHERE abalance <> 0), 0),
           coalesce((SELECT sum(tbalance) FROM pgbench_tellers), 0),
           coalesce((SELECT sum(bbalance) FROM pgbench_branches), 0),
           coalesce(sum(delta), 0), count(*)
      FROM pgbench_history"""


@dataclass(frozen=True, slots=True)
class Sums:
    """What one snapshot shows; ``transactions`` is the number of rows in the history."""

    accounts: int
    tellers: int
    branches: int
    history: int
    transactions: int

    @property
    def balanced(self) -> bool:
        return self.accounts == self.tellers == self.branches == self.history


def look(connection: psycopg.Connection) -> Sums:
    """Read the sums in one snapshot."""
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with connection.transaction():
        row = connection.execute(_SUMS).fetchone()
    assert row is not None
    return Sums(*(int(value) for value in row))


class InvariantChecker:
    """A thread that looks until it is stopped; a context manager.

    ``latest`` is what it saw last and ``looks`` how often it has looked.
    """

    def __init__(self, url: str) -> None:
        self.latest = Sums(0, 0, 0, 0, 0)
        self.looks = 0
        self._url = url
        self._failure: DemoError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="invariant")

    def check(self) -> None:
        """Raises DemoError when a snapshot was torn, or when the target cannot be read."""
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> InvariantChecker:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(_INDEX)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with psycopg.connect(self._url) as connection:
                while not self._stop.wait(_PAUSE):
                    self._judge(look(connection))
        except DemoError as failure:
            self._failure = failure
        except psycopg.Error as error:
            self._failure = DemoError(f"the target cannot be read: {str(error).strip()}")

    def _judge(self, sums: Sums) -> None:
        if not sums.balanced:
            raise DemoError(
                f"torn transaction in the target: the sums differ after {sums.transactions} transactions:"
                f" accounts {sums.accounts}, tellers {sums.tellers}, branches {sums.branches}, history {sums.history}"
            )
        self.latest = sums
        self.looks += 1
