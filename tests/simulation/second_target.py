"""A second target: what transactions write there, what it refuses at first, and what it may hold.

Two thirds of the transactions write a row of its table ``mirror``, of which there are few, and add their names to
``mirrored``, a table without a key. After each transaction of this target:

* a transaction is there at most once, and only if it writes there;
* with each there are all earlier ones that write the same row, and the row has what the last of them wrote: so order,
  and no transaction in part;
* with ``targetConsistency = prefix``, and without a refusal, all earlier ones are there that write there at all.

* where both targets commit together: none is there that the first target still refuses.

At the end all are there that write there. Nothing here is Kainite's code but the form in which tables are assigned.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from kainite.settings.assignment import TableAssignment

FIRST: Final = "first"
SECOND: Final = "second"
ASSIGNMENT: Final = TableAssignment(((FIRST, ()), (SECOND, ("mirror*",))))
ROWS: Final = 4

_DDL: Final = """
    CREATE TABLE mirror (id bigint PRIMARY KEY, n bigint); CREATE TABLE mirrored (what text);
    CREATE TABLE refused (what text PRIMARY KEY);
    CREATE TRIGGER refusing BEFORE INSERT ON mirrored WHEN EXISTS (SELECT 1 FROM refused WHERE what = NEW.what)
    BEGIN SELECT RAISE(ABORT, 'refused'); END;
"""


class SecondTarget:
    """The database, and the oracle's eye on it.

    Args:
        folder: where its file is made.
        transactions: of the history.
        refused: the transactions that the first target refuses at first; this one refuses each second of them.
        prefix: whether commits must be in order, all of them.
        together: whether the targets commit together.
    """

    def __init__(
        self, folder: Path, transactions: int, refused: Collection[int], *, prefix: bool, together: bool = False
    ) -> None:
        self.path = folder / "second.db"
        self._all = [number for number in range(1, transactions + 1) if _writes(number)]
        self._vetoed = set(refused) if together else set()
        refused = [number for number in self._all if number in sorted(refused)[::2]]
        self._prefix = prefix and not refused and not self._vetoed
        self._there: list[int] = []
        self._database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self._database.executescript(_DDL)
        self._database.executemany("INSERT INTO refused VALUES (?)", [(f"T-{number}",) for number in refused])

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    def deltas(self, name: str, number: int) -> list[dict[str, Any]]:
        """Returns what a transaction writes to this target."""
        if not _writes(number):
            return []
        row = {"id": number % ROWS, "n": number}
        mirror = {"uow": name, "table": "mirror", "op": "upsert", "key": {"id": row["id"]}, "row": row}
        return [mirror, {"uow": name, "table": "mirrored", "op": "insert", "row": {"what": name}}]

    def heal(self) -> None:
        """Lets it take what it refused."""
        self._database.execute("DELETE FROM refused")
        self._vetoed.clear()

    def look(self) -> str | None:
        """Returns what is wrong with what it holds."""
        said = [int(what.partition("-")[2]) for (what,) in self._database.execute("SELECT what FROM mirrored")]
        there = sorted(said)
        rows = dict(self._database.execute("SELECT id, n FROM mirror"))
        if len(set(there)) < len(there) or not set(self._there) <= set(there) <= set(self._all):
            return f"the second target has {there}, and had {self._there}"
        self._there = there
        if early := self._vetoed & set(there):
            return f"the second target has {sorted(early)}, which the first one refuses"
        for place in range(ROWS):
            expected = [number for number in self._all if number % ROWS == place]
            found = [number for number in there if number % ROWS == place]
            if found != expected[: len(found)]:
                return f"the second target has {found}, which write one row, and not all of {expected} before them"
            if rows.get(place) != (found[-1] if found else None):
                return f"row {place} of the second target is {rows.get(place)} after {found}"
        if self._prefix and there != self._all[: len(there)]:
            return f"the second target has {there}, and targetConsistency is prefix"
        return None

    def missing(self) -> list[str]:
        """Returns the transactions that are not there."""
        return [f"T-{number} in the second target" for number in self._all if number not in self._there]

    def close(self) -> None:
        self._database.close()


def _writes(number: int) -> bool:
    return number % 3 != 0
