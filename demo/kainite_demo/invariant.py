"""Looks for torn transactions in the target: checks TPC-B's invariant in one snapshot after another.

A transaction that is applied in part, however briefly, makes the four sums unequal in a snapshot
taken at that moment. So the demo takes snapshots as often as it can.

Summing millions of accounts at each look would be too slow; a partial index holds the accounts whose
balance is not zero.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import psycopg

from kainite.base.errors import DemoError
from kainite_demo.reading import DatabaseReading, is_mariadb

_INDEX = "CREATE INDEX IF NOT EXISTS kainite_demo_moved ON pgbench_accounts (abalance) WHERE abalance <> 0"
_SUMS = """
    SELECT coalesce((SELECT sum(abalance) FROM pgbench_accounts WHERE abalance <> 0), 0),
           coalesce((SELECT sum(tbalance) FROM pgbench_tellers), 0),
           coalesce((SELECT sum(bbalance) FROM pgbench_branches), 0),
           coalesce(sum(delta), 0), count(*)
      FROM pgbench_history"""


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of one snapshot; ``transactions`` is the number of rows in the history."""

    accounts: int
    tellers: int
    branches: int
    history: int
    transactions: int

    @property
    def balanced(self) -> bool:
        return self.accounts == self.tellers == self.branches == self.history


class Invariant:
    """The ``latest`` snapshot of the target, and the number of ``looks``."""

    def __init__(self) -> None:
        self.latest = Sums(0, 0, 0, 0, 0)
        self.looks = 0

    def look(self, opened: DatabaseReading) -> None:
        """Reads the sums in one snapshot.

        Raises:
            DemoError: the sums differ.
        """
        [row] = opened.execute(_SUMS)
        sums = Sums(*(int(value) for value in row))
        if not sums.balanced:
            raise DemoError(
                f"torn transaction in the target: the sums differ after {sums.transactions} transactions:"
                f" accounts {sums.accounts}, tellers {sums.tellers}, branches {sums.branches}, history {sums.history}"
            )
        self.latest = sums
        self.looks += 1


def make_quick(url: str) -> None:
    """Adds the index by which a look takes milliseconds."""
    if is_mariadb(url):  # has no partial index: the look finds what is below and above zero
        from kainite.targets.mariadb.connection import connect

        with closing(connect(url)) as target:
            target.query("CREATE INDEX kainite_demo_moved ON pgbench_accounts (abalance)")
        return
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_INDEX)
