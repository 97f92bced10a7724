"""Brings the AUTO_INCREMENT columns of a MariaDB target to where the counters of its source stand.

A counter is only ever set forward, so that no number that the target has given is given again. ``ALTER TABLE`` commits
by itself, and belongs to no transaction of a cut-over; setting a counter again changes nothing: whoever is killed in
between starts again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pymysql

from kainite.base.errors import TargetError
from kainite.replicate.counters import CountingColumn, SourceCounters
from kainite.replicate.findings import CheckFinding, fine, some_names, warning, wrong
from kainite.replicate.mariadb_target_session import sql_name
from kainite.targets.mariadb.rows import line_of, rows_of

_ABOUT: Final = "sequences"
_COLUMN: Final = """
    SELECT c.column_type, c.extra LIKE '%%auto_increment%%', t.auto_increment FROM information_schema.columns c
    JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
    WHERE c.table_schema = %s AND c.table_name = %s AND c.column_name = %s"""
_INTEGER: Final = re.compile(r"(tinyint|smallint|mediumint|int|bigint)(?:\(\d+\))?( unsigned)?( zerofill)?")
_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}


@dataclass(frozen=True, slots=True)
class TargetCounter:
    """A column of the target that is to count on.

    Attributes:
        wanted: what the source gives next.
        type: the column's type; empty where the target has no such column.
        counts: whether it counts by itself.
    """

    wanted: CountingColumn
    type: str
    counts: bool

    @property
    def problem(self) -> str:
        """Returns why the column cannot count on; empty where it can, or does not count."""
        found = _INTEGER.fullmatch(self.type.lower())
        if not self.counts or found is None:  # of a floating-point type, say
            return ""
        bits = _BITS[found[1]]
        if self.wanted.next < (1 << bits if found[2] else 1 << (bits - 1)):
            return ""
        return f"{self.wanted.column} comes to {self.wanted.next:,}, and the target's column is {self.type}"


def target_counters(target: pymysql.connections.Connection, columns: Sequence[CountingColumn]) -> list[TargetCounter]:
    """Returns the target's columns for those of a source that count.

    Args:
        target: a session with the target.
        columns: the source's.

    Raises:
        pymysql.Error: the target does not answer.
    """
    found = []
    for one in columns:
        rows = rows_of(target, _COLUMN, *one.place, one.name)
        kind, counts = (str(rows[0][0]), bool(rows[0][1])) if rows else ("", False)
        found.append(TargetCounter(one, kind, counts))
    return found


def look_at_counters(source: SourceCounters, found: Sequence[TargetCounter]) -> Iterator[CheckFinding]:
    """Yields which counters cannot be set.

    Args:
        source: what of the source counts.
        found: the target's columns for its columns.
    """
    if source.hidden:
        yield wrong(_ABOUT, f"the source's role may not read {some_names(source.hidden)}",
                    f"GRANT SELECT ON SEQUENCE {', '.join(source.hidden)} TO the role of --source")  # fmt: skip
    if bare := [one for one in found if not one.counts]:
        yield warning(_ABOUT, f"the target does not count {some_names([one.wanted.column for one in bare])}",
                      f"{_making(bare[0])}, if it is needed")  # fmt: skip
    for one in found:
        if problem := one.problem:
            yield wrong(_ABOUT, problem, f"ALTER TABLE {sql_name(*one.wanted.place)} MODIFY"
                        f" {sql_name(one.wanted.name)} BIGINT NOT NULL AUTO_INCREMENT")  # fmt: skip
    if source.others:
        yield warning(_ABOUT, f"the source's own sequences are not set: {some_names(source.others)}",
                      "CREATE SEQUENCE and SETVAL in the target, if something there needs them")  # fmt: skip
    if not source.hidden and (count := sum(one.counts for one in found)):
        yield fine(_ABOUT, f"{count} are set at the end")


def set_counters(target: pymysql.connections.Connection, found: Sequence[TargetCounter]) -> list[str]:
    """Sets the target's counters to where those of the source stand; returns those that were set.

    Args:
        target: a session in autocommit mode.
        found: the target's columns.

    Raises:
        TargetError: the target refused, or does not take the value.
    """
    for problem in filter(None, (one.problem for one in found)):
        raise TargetError(problem)  # the server would take the value, and refuse each row
    return [one.wanted.column for one in found if one.counts and _set_forward(target, one.wanted)]


def _set_forward(target: pymysql.connections.Connection, wanted: CountingColumn) -> bool:
    if _next(target, wanted) >= wanted.next:
        return False
    table = sql_name(*wanted.place)
    try:
        target.query(f"ALTER TABLE {table} AUTO_INCREMENT = {wanted.next}")
    except pymysql.Error as error:
        raise TargetError(f"the counter of {table} cannot be set to {wanted.next}: {line_of(error)}") from None
    if (now := _next(target, wanted)) < wanted.next:
        raise TargetError(f"the counter of {table} stands at {now}, although it was set to {wanted.next}")
    return True


def _next(target: pymysql.connections.Connection, wanted: CountingColumn) -> int:
    return int(rows_of(target, _COLUMN, *wanted.place, wanted.name)[0][2] or 1)


def _making(one: TargetCounter) -> str:
    table, column = sql_name(*one.wanted.place), sql_name(one.wanted.name)
    return f"ALTER TABLE {table} MODIFY {column} {one.type.upper() or 'BIGINT'} NOT NULL AUTO_INCREMENT"
