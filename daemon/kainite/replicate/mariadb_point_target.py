"""MariaDB as the target of a point: sessions of this process whose snapshots were begun while the apply job stands.

No other session can take a snapshot over, so who compares reads through these sessions. Each looks in its own snapshot
whether the apply job still stands at the point (:mod:`~kainite.replicate.stop_ledger`). Where all of them see that, all
have the units from before the point, and no others. The target needs no binlog for that. What somebody else writes
there meanwhile, who is no apply job, one session may have and another may not.

Tables are held behind that, when the apply job goes on already: each session touches each table once, and ``ALTER
TABLE``, ``TRUNCATE`` and ``DROP`` wait for its end. A table that was altered in between is told as such by the server.
The sessions end with the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from kainite.base.errors import TargetUnavailableError
from kainite.capture.mysql.snapshot_session import SnapshotSession
from kainite.replicate import mariadb_ledger, mariadb_table_ledger
from kainite.replicate.mariadb_stop_ledger import MARIADB
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.replicate.point_target import PointView, SeenTarget, refuse_unfinished_load, unready_tables
from kainite.replicate.stop_ledger import decoded
from kainite.replicate.tables import TableName
from kainite.replicate.verify_ledger import VerifySession
from kainite.targets.mariadb.rows import as_target_error

_HAS: Final = """
    SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = %s"""


@dataclass(slots=True)
class MariadbPointTarget:
    """Implements :class:`kainite.replicate.point_target.PointTarget`.

    Attributes:
        url: the target.
        log_partition: the log's name there.
        tables: the tables, as SQL, which are held against being altered.
        parallelism: how many sessions there are.
        sessions: those of the latest point, as long as that lasts.
    """

    url: str = field(repr=False)
    log_partition: str
    tables: Sequence[str]
    parallelism: int
    sessions: tuple[SnapshotSession, ...] = field(default=())

    def session(self) -> AbstractContextManager[VerifySession]:
        return mariadb_session(self.url)

    @contextmanager
    def connect(self) -> Iterator[PointView]:
        with ExitStack() as opened:
            self.sessions = tuple(
                opened.enter_context(closing(SnapshotSession(self.url, as_target_error)))
                for _ in range(self.parallelism)
            )
            yield _MariadbView(self.sessions, self.log_partition, self.tables)


@dataclass(frozen=True, slots=True)
class _MariadbView:
    """Implements :class:`kainite.replicate.point_target.PointView`."""

    sessions: Sequence[SnapshotSession]
    log_partition: str
    tables: Sequence[str]

    def see(self, request: int) -> SeenTarget | None:
        seen: list[list[tuple[Any, ...]]] = []
        for session in self.sessions:
            session.begin_anywhere()
            seen.append(session.found(MARIADB.see, self.log_partition, request))
        return ("", decoded(seen[0][0][0])) if all(seen) else None

    def hold(self) -> None:
        for session in self.sessions:
            for table in self.tables:
                try:
                    session.found(f"SELECT 1 FROM {table} LIMIT 1")
                except TargetUnavailableError as error:
                    raise TargetUnavailableError(f"{error} ({table}); start the comparison again") from None

    def unready(self, place: int) -> dict[TableName, str]:
        first = self.sessions[0]
        if first.found(_HAS, "kainite_load") == [("0",)]:
            return {}
        state = first.found(mariadb_ledger.STATE, self.log_partition)
        refuse_unfinished_load(state[0][0] if state else None)
        rows = first.found(mariadb_table_ledger.STATES, self.log_partition)
        return unready_tables(((schema, name, int(point), state) for schema, name, point, state in rows), place)
