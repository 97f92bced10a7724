"""The oracle: what the target may hold, by the source's history alone. It shares no code with Kainite.

After each transaction of the target:

* a source transaction is there at most once (``journal`` has its name once);
* when it is there, so is every earlier one that it conflicts with;
* the tables hold exactly what the source's transactions that are there add up to: none of them is there in part.

At the end, once faults have stopped, all transactions are there.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from simulation.source import JOURNAL, Row, Source, State, Transaction, apply


class BrokenPromiseError(AssertionError):
    """The target holds what it must not hold, or lacks what it must have."""


class Oracle:
    """Watches one target.

    Args:
        source: the history.
        path: of the target's database.
    """

    def __init__(self, source: Source, path: Path) -> None:
        self._source = source
        self._by_name = {transaction.name: transaction for transaction in source.history}
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._version = -1
        self._expected: State = {name: {} for name in source.tables}
        self.there: dict[str, Transaction] = {}

    def look(self) -> str | None:
        """Looks at the target if it has changed; returns what is wrong with it."""
        version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        if version == self._version:
            return None
        self._version = version
        names = [name for (name,) in self._connection.execute(f"SELECT what FROM {JOURNAL} ORDER BY rowid")]
        if (wrong := self._twice(names)) is not None:
            return wrong
        fresh = sorted((self._by_name[n] for n in names if n not in self.there), key=lambda one: one.number)
        self.there.update((one.name, one) for one in fresh)
        for transaction in fresh:
            for earlier in self._source.history[: transaction.number - 1]:
                if earlier.name not in self.there and transaction.conflicts(earlier):
                    shared = sorted(
                        map(
                            str,
                            (transaction.writes & (earlier.writes | earlier.reads))
                            | (transaction.reads & earlier.writes),
                        )
                    )
                    return f"{transaction.name} is applied before {earlier.name}; both touch {shared}"
            for change in transaction.changes:
                apply(self._source.tables, self._expected, change)
        return self._torn([one.name for one in fresh])

    def missing(self) -> list[str]:
        """Returns the transactions that are not there."""
        return [one.name for one in self._source.history if one.name not in self.there]

    def close(self) -> None:
        self._connection.close()

    def _twice(self, names: list[str]) -> str | None:
        unknown = [name for name in names if name not in self._by_name]
        if unknown:
            return f"the target has a transaction {unknown[0]} that the source never had"
        twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if twice:
            return f"{twice[0]} is applied twice"
        lost = [name for name in self.there if name not in names]
        return f"{lost[0]} was there and is gone" if lost else None

    def _torn(self, fresh: list[str]) -> str | None:
        for name, expected in self._expected.items():
            found = self._rows(name)
            if found != expected:
                keys = sorted(key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))
                key = keys[0]
                return (
                    f"{name} {key} is {found.get(key)}, not {expected.get(key)}, "
                    f"after {', '.join(fresh) or 'no transaction'} was applied"
                )
        return None

    def _rows(self, table: str) -> dict[int, Row]:
        cursor = self._connection.execute(f"SELECT * FROM {table}")
        columns = [column[0] for column in cursor.description]
        return {row[0]: dict(zip(columns, row, strict=True)) for row in cursor}
