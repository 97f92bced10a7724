"""Two logs that write into one target: what each is called there, and the oracle's eye on the tables that they take.

The tables of an application are those whose names begin as its settings file says. Whenever a log has taken its
tables, and after each transaction of the target from then on, the target's own list must name that log, and no other
one, for each of them: until an apply job of it that has shut out the older ones takes others.

The settings file of the second log may name the tables of both for some time. Which log then takes the first one's is
left to chance; the other log must be refused, again and again, until the file is put right.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kainite_spark.targets.log_tables import LogTables

PREFIX: Final = "other_"


@dataclass(frozen=True, slots=True)
class Application:
    """One of two applications, or the only one.

    Attributes:
        log: what its log is called in the target.
        prefix: what the names of its tables begin with; empty for all tables that have no other owner.
    """

    log: str = "log/0"
    prefix: str = ""

    def has(self, table: str) -> bool:
        """Tells whether a table belongs to the application."""
        return table.startswith(PREFIX) == bool(self.prefix)


ONLY: Final = Application()
SECOND: Final = Application("other/0", PREFIX)


@dataclass
class Claims:
    """What each log has taken.

    Attributes:
        path: of the target's database.
        broken: is told what is wrong.
    """

    path: Path
    broken: Callable[[str], None]
    _taken: dict[str, set[str]] = field(default_factory=dict)

    def took(self, taking: LogTables) -> None:
        """Notes that a log has taken tables, and may begin; it keeps the former ones while an older job may write."""
        self._taken[taking.log] = {*taking.full_names, *self._taken.get(taking.log, set())}
        self.look()

    def gave_up(self, taking: LogTables) -> None:
        """Notes that a log has no other tables any more."""
        self._taken[taking.log] = set(taking.full_names)
        self.look()

    def look(self) -> None:
        """Looks whether the target's list has each table under the log that has taken it."""
        database = sqlite3.connect(self.path)
        there = dict(database.execute("SELECT table_name, log FROM kainite_log_table")) if self._taken else {}
        database.close()
        for log, tables in self._taken.items():
            if strange := sorted(name for name in tables if there.get(name) != log):
                self.broken(f"{log} writes {strange[0]}, and the target's list says {there.get(strange[0])}")


class ClaimedTarget:
    """A target of which the tables are taken under the oracle's eye; all else is the target's own."""

    def __init__(self, target: Any, claims: Claims) -> None:
        self._target = target
        self._claims = claims

    def take_tables(self, taking: LogTables) -> None:
        self._target.take_tables(taking)
        self._claims.took(taking)

    def give_up_tables(self, fence: Any, taking: LogTables, mark: Any = None) -> None:
        self._target.give_up_tables(fence, taking, mark)
        self._claims.gave_up(taking)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)
