"""SQLite as a target that can prepare: what it prepares is tried on a copy of the file, and done at its end.

While a transaction is prepared, nothing else is written: it holds all rows, and the row of its fence, as PostgreSQL's
would hold those that it has written. So what was taken on the copy is taken at the end too.
"""

from __future__ import annotations

import pickle
import sqlite3
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kainite.base.errors import TargetBusyError, TargetUnavailableError
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.mark import TargetMark
from kainite_spark.targets.preparing import PreparedPart, name_in
from kainite_spark.targets.sqlite.target import SqliteTarget

_TABLE = "CREATE TABLE IF NOT EXISTS prepared (gid text PRIMARY KEY, at real, call blob)"


@dataclass(frozen=True, slots=True)
class PreparingSqlite:
    """Implements :class:`kainite_spark.targets.preparing.PreparingTarget`.

    Args:
        inner: the target.
        clock: returns seconds.
    """

    inner: SqliteTarget
    clock: Callable[[], float] = time.monotonic

    def connect(self) -> PreparingSqliteSession:
        return PreparingSqliteSession(self)

    def require_preparing(self) -> None:
        pass

    def ledger_place(self) -> str:
        return self.inner.path

    def prepare(self, log_partition: str, catalogue: Catalogue) -> None:
        self.inner.prepare(log_partition, catalogue)
        self._run(_TABLE)

    def take_tables(self, taking: LogTables) -> None:
        self.inner.take_tables(taking)

    def give_up_tables(self, fence: Fence, taking: LogTables, mark: TargetMark | None = None) -> None:
        self.unlocked(TargetUnavailableError)
        self.inner.give_up_tables(fence, taking, mark)

    def raise_generation(self, log_partition: str, generation: int, mark: TargetMark | None = None) -> None:
        self.unlocked(TargetUnavailableError)
        self.inner.raise_generation(log_partition, generation, mark)

    def begin_micro_batch(self, fence: Fence, mark: TargetMark | None = None) -> None:
        self.unlocked(TargetUnavailableError)
        self.inner.begin_micro_batch(fence, mark)

    def close_micro_batch(self, fence: Fence, tids: Collection[int], mark: TargetMark | None = None) -> set[int]:
        self.unlocked(TargetUnavailableError)
        return self.inner.close_micro_batch(fence, tids, mark)

    def trim(self, fence: Fence, below: int, mark: TargetMark | None = None) -> int:
        self.unlocked(TargetUnavailableError)
        return self.inner.trim(fence, below, mark)

    def prepare_common_mark(self) -> None:
        self.inner.prepare_common_mark()

    def note_common_mark(self, fence: Fence, everywhere_below: int, mark: TargetMark | None = None) -> None:
        self.unlocked(TargetUnavailableError)
        self.inner.note_common_mark(fence, everywhere_below, mark)

    def close(self) -> None:
        self.inner.close()

    def prepared(self, prefix: str) -> Sequence[PreparedPart]:
        found = []
        for gid, at in self._run("SELECT gid, at FROM prepared ORDER BY at, gid"):
            name = name_in(gid)
            if gid.startswith(prefix) and name is not None:
                found.append(PreparedPart(name, gid, self.clock() - at))
        return found

    def finish(self, gid: str, *, committed: bool) -> bool:
        found = self._run("SELECT call FROM prepared WHERE gid = ?", gid)
        if not found:
            return False
        if committed:
            self.act(self.inner, *pickle.loads(found[0][0]))
        self._run("DELETE FROM prepared WHERE gid = ?", gid)
        return True

    def tried(self, gid: str, method: str, *args: Any, **more: Any) -> None:
        """Prepares a call of a session's method."""
        self.unlocked(TargetBusyError)
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "copy.db"
            with closing(sqlite3.connect(self.inner.path)) as here, closing(sqlite3.connect(copy)) as there:
                here.backup(there)
            self.act(replace(self.inner, path=str(copy)), method, args, more)
        call = pickle.dumps((method, args, more))
        self._run("INSERT INTO prepared VALUES (?, ?, ?)", gid, self.clock(), call)

    @staticmethod
    def act(target: SqliteTarget, method: str, args: Any, more: Any) -> None:
        with closing(target.connect()) as session:
            getattr(session, method)(*args, **more)

    def unlocked(self, trouble: type[Exception]) -> None:
        """Raises an error if a transaction is prepared."""
        if found := self._run("SELECT gid FROM prepared"):
            raise trouble(f"canceling statement due to lock timeout: {found[0][0]} is prepared")

    def _run(self, statement: str, *values: object) -> list[Any]:
        with closing(sqlite3.connect(self.inner.path, isolation_level=None)) as connection:
            return connection.execute(statement, values).fetchall()


@dataclass(frozen=True, slots=True)
class PreparingSqliteSession:
    """Implements :class:`kainite_spark.targets.preparing.PreparingSession`; each call has a connection of its own."""

    target: PreparingSqlite

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        with closing(self.target.inner.connect()) as session:
            return session.applied(log_partition, tids)

    def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        self.target.unlocked(TargetBusyError)
        self.target.act(self.target.inner, "apply", (fence, tuple(units)), {"folded": folded})

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        self.target.unlocked(TargetBusyError)
        self.target.act(self.target.inner, "apply_in_source_order", (fence, unit), {})

    def prepare(self, fence: Fence, units: Collection[Unit], gid: str, *, folded: bool = False) -> None:
        self.target.tried(gid, "apply", fence, tuple(units), folded=folded)

    def prepare_in_source_order(self, fence: Fence, unit: Unit, gid: str) -> None:
        self.target.tried(gid, "apply_in_source_order", fence, unit)

    def prepared(self, prefix: str) -> Sequence[PreparedPart]:
        return self.target.prepared(prefix)

    def finish(self, gid: str, *, committed: bool) -> bool:
        return self.target.finish(gid, committed=committed)

    def close(self) -> None:
        pass
