"""Looks whether a MariaDB source is closed to writers, before a cut-over.

``read_only`` refuses each statement that changes a row, and each commit of one that did, but for those who have the
right READ_ONLY ADMIN (or SUPER), and for what comes from a server that this one replicates. So these are listed, and
the event scheduler, whose events have such rights even if nobody is there. What really commits is watched
(:mod:`kainite.replicate.binlog_watch`), which needs the same right for its marker; but only until the cut-over's end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.capture.mysql.table_reading import HEARTBEATS
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_point import source_catalogue
from kainite.replicate.findings import CheckFinding, fine, some_names, warning, wrong
from kainite.targets.mariadb.grants import TableGrant, grants_of, lacking

_ABOUT: Final = "source"
_WRITE_ALL_THE_SAME: Final = """
    SELECT DISTINCT grantee FROM information_schema.user_privileges
    WHERE privilege_type IN ('SUPER', 'READ_ONLY ADMIN', 'READ ONLY ADMIN') AND grantee <> %s ORDER BY grantee"""
_SESSIONS: Final = """
    SELECT CONCAT('id ', id, ' (', user, ')') FROM information_schema.processlist
    WHERE db = %s AND user <> SUBSTRING_INDEX(CURRENT_USER(), '@', 1) ORDER BY id"""
_GRANTEE: Final = """
    SELECT CONCAT(QUOTE(SUBSTRING_INDEX(user, '@', 1)), '@', QUOTE(SUBSTRING_INDEX(user, '@', -1)))
    FROM (SELECT CURRENT_USER() AS user) AS own"""
_REPLICATING: Final = "SHOW GLOBAL STATUS LIKE 'Slaves_running'"
_HEARTBEAT_RIGHTS: Final = ("CREATE", "SELECT", "INSERT", "UPDATE")


def look_at_binlog_writers(ends: BinlogEnds) -> Iterator[CheckFinding]:
    """Yields who may still write in a source, and whether the cut-over can; raises SourceError."""
    with source_catalogue(ends) as (source, database):
        yield _closed(source)
        yield from _by_themselves(source)
        yield from _others(source, database)
        for xa in _prepared(source):
            yield wrong("sessions", f"the XA transaction {xa} is prepared, and may still commit",
                        "XA ROLLBACK, or XA COMMIT")  # fmt: skip
        yield from _own_rights(source, database)


def _closed(source: MysqlSourceCatalogue) -> CheckFinding:
    if source.variables("read_only").get("read_only", "OFF").upper() != "OFF":
        return fine(_ABOUT, "the server refuses writes (read_only)")
    return wrong(_ABOUT, "the server takes writes", "SET GLOBAL read_only = 1, and in its settings file")


def _by_themselves(source: MysqlSourceCatalogue) -> Iterator[CheckFinding]:
    """Yields what of the server itself writes without any user's session."""
    if any(int(count) for _, count in source.rows(_REPLICATING)):
        yield warning(_ABOUT, "it replicates another server, whose changes read_only lets through", "STOP ALL SLAVES")
    if source.variables("event_scheduler").get("event_scheduler", "OFF").upper() == "ON":
        yield warning(_ABOUT, "its event scheduler is on: an event whose definer has READ_ONLY ADMIN may write at any"
                      " time, also behind the cut-over", "SET GLOBAL event_scheduler = OFF")  # fmt: skip


def _others(source: MysqlSourceCatalogue, database: str) -> Iterator[CheckFinding]:
    if users := _first(source.rows(_WRITE_ALL_THE_SAME, [source.value(_GRANTEE)])):
        yield warning(_ABOUT, f"{some_names(users)} may write all the same",
                      "REVOKE READ_ONLY ADMIN, SUPER ON *.* FROM those that the application uses")  # fmt: skip
    if sessions := _first(source.rows(_SESSIONS, [database])):
        yield warning("sessions", f"{len(sessions)} others are open: {some_names(sessions)}", "KILL them by their ids")


def _prepared(source: MysqlSourceCatalogue) -> Sequence[str]:
    """Returns the names of XA transactions that are prepared, of whatever database."""
    names = [row[-1] for row in source.rows("XA RECOVER")]
    return [name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in names]


def _own_rights(source: MysqlSourceCatalogue, database: str) -> Iterator[CheckFinding]:
    grants = grants_of(str(line) for (line,) in source.rows("SHOW GRANTS"))
    if not (_has(grants, "READ_ONLY ADMIN") or _has(grants, "READ ONLY ADMIN") or _has(grants, "SUPER")):
        yield wrong("rights", "the source's user may write no marker while the server is read_only",
                    "GRANT READ_ONLY ADMIN ON *.* TO the user (before MariaDB 10.11: SUPER)")  # fmt: skip
    if missing := lacking(grants, _HEARTBEAT_RIGHTS, database, HEARTBEATS):
        rights = ", ".join(missing)
        yield wrong("rights", f"the source's user has no {rights} on {database}.{HEARTBEATS}",
                    f"GRANT {rights} ON {database}.{HEARTBEATS} TO the user")  # fmt: skip


def _has(grants: tuple[TableGrant, ...], right: str) -> bool:
    return not lacking(grants, [right], "", "")


def _first(rows: Sequence[tuple[object, ...]]) -> list[str]:
    return [str(row[0]) for row in rows]
