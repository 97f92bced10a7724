"""The oracle's eye on the common mark that each of two targets has.

After each transaction of either target:

* no mark is lower than it was;
* no unit is acknowledged in either target for the first time whose transaction id is below a mark that either target
  had before: the mark has said that the unit is there, or never will be.

So it needs neither the log nor Kainite's code: a mark that was written too far is noticed when a unit below it comes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path


class CommonMarks:
    """What both targets have shown so far.

    Args:
        paths: the targets' files, by the targets' names.
    """

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._open = {
            name: sqlite3.connect(path, isolation_level=None, check_same_thread=False) for name, path in paths.items()
        }
        self._marks = dict.fromkeys(paths, -1)
        self._acknowledged: dict[str, set[int]] = {name: set() for name in paths}

    def look(self) -> str | None:
        """Returns what is wrong with the marks, or with what came after them."""
        highest = max(self._marks.values())
        for name, database in self._open.items():
            acknowledged = {tid for (tid,) in database.execute("SELECT transaction_id FROM kainite_applied")}
            late = {tid for tid in acknowledged - self._acknowledged[name] if tid < highest}
            if late:
                return f"unit {min(late)} came into target {name} after the common mark {highest}"
            self._acknowledged[name] |= acknowledged
        for name in self._open:
            mark = self._mark(name)
            if mark < self._marks[name]:
                return f"the common mark in target {name} fell from {self._marks[name]} to {mark}"
            self._marks[name] = mark
        return None

    def close(self) -> None:
        for database in self._open.values():
            database.close()

    def _mark(self, name: str) -> int:
        """Returns the mark of a target; -1 before its apply job has noted one."""
        database = self._open[name]
        if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'kainite_mark'").fetchone():
            return -1
        (mark,) = database.execute("SELECT max(everywhere_below) FROM kainite_mark").fetchone()
        return -1 if mark is None else int(mark)
