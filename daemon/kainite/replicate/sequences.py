"""Brings a target's sequences to where those of its source stand: sequences are not decoded.

A sequence that belongs to a column (``serial``, identity) is found in the target by that column, any other one by its
own name. A value is only ever set forward, in the sequence's own direction, so that no number that the target has
given is given again; a sequence that cycles has no forward, and gets the source's value. ``setval`` belongs to no
transaction, and setting a value again changes nothing: whoever is killed in between starts again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import namedtuple_row

from kainite.replicate.counters import CountingColumn, SourceCounters
from kainite.replicate.findings import CheckFinding, fine, some_names, warning, wrong
from kainite.uow.catalogue.tables import Catalogue

_ABOUT: Final = "sequences"

_IN_SOURCE: Final = """
    SELECT n.nspname AS schema, c.relname AS name, tn.nspname AS owner_schema, t.relname AS owner, a.attname AS column,
           has_sequence_privilege(c.oid, 'SELECT') AS readable
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i')
         AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0
    LEFT JOIN pg_class t ON t.oid = d.refobjid LEFT JOIN pg_namespace tn ON tn.oid = t.relnamespace
    LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
    WHERE c.relkind = 'S' AND c.relpersistence <> 't' AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 1, 2"""
_OWNED: Final = """
    SELECT to_regclass(format('%%I.%%I', %(schema)s::text, %(owner)s::text)) IS NOT NULL,
           (SELECT pg_get_serial_sequence(format('%%I.%%I', %(schema)s::text, %(owner)s::text), attname)
            FROM pg_attribute WHERE attrelid = to_regclass(format('%%I.%%I', %(schema)s::text, %(owner)s::text))
              AND attname = %(column)s AND NOT attisdropped)"""
_NAMED: Final = """
    SELECT format('%%I.%%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'S' AND n.nspname = %s AND c.relname = %s"""
_SHAPE: Final = "SELECT seqincrement, seqcycle FROM pg_sequence WHERE seqrelid = %s::regclass"


@dataclass(frozen=True, slots=True)
class PairedSequence:
    """A sequence of the source and the one of the target that stands for it.

    Attributes:
        source: its name in the source, quoted and with its schema.
        target: in the target, also quoted; None where the target has none.
        readable: whether Kainite's role may read it in the source.
    """

    source: str
    target: str | None
    readable: bool


@dataclass(frozen=True, slots=True)
class SequencePlace:
    """Where a sequence stands: its last value, and whether that value was given already."""

    last: int
    called: bool

    def is_behind(self, other: SequencePlace, increment: int) -> bool:
        """Tells whether the sequence is to be set forward to reach another place."""
        step = 1 if increment > 0 else -1
        return (self.last * step, self.called) < (other.last * step, other.called)


def paired(source: psycopg.Connection, target: psycopg.Connection) -> list[PairedSequence]:
    """Returns the source's sequences but those of tables that the target does not have."""
    found = []
    rows: Sequence[Any] = source.cursor(row_factory=namedtuple_row).execute(_IN_SOURCE.encode()).fetchall()
    for row in rows:
        there, name = _in_target(target, row)
        if there:
            found.append(PairedSequence(sql.Identifier(row.schema, row.name).as_string(None), name, row.readable))
    return found


def column_counters(source: psycopg.Connection, target: Catalogue) -> SourceCounters:
    """Returns what of a source counts, for a target whose columns count by themselves.

    Args:
        source: a session in autocommit mode.
        target: the target's tables.
    """
    columns, others, hidden = [], [], []
    rows: Sequence[Any] = source.cursor(row_factory=namedtuple_row).execute(_IN_SOURCE.encode()).fetchall()
    for row in rows:
        name = sql.Identifier(row.schema, row.name).as_string(None)
        table = target.find(f"{row.owner_schema}.{row.owner}") if row.owner else None
        if row.owner and table is None:
            continue
        if not row.readable:
            hidden.append(name)
        elif table is None or (following := _following(source, name)) is None:
            others.append(name)
        else:
            place = (table.schema or target.default_schema or "", table.bare_name)
            columns.append(CountingColumn(f"{table.name}.{row.column}", place, row.column, following))
    return SourceCounters(tuple(columns), tuple(others), tuple(hidden))


def look_at_sequences(pairs: Sequence[PairedSequence]) -> Iterator[CheckFinding]:
    """Yields which sequences cannot be set."""
    if hidden := [pair.source for pair in pairs if not pair.readable]:
        yield wrong(_ABOUT, f"the source's role may not read {some_names(hidden)}",
                    f"GRANT SELECT ON SEQUENCE {', '.join(hidden)} TO the role of --source")  # fmt: skip
    if missing := [pair.source for pair in pairs if pair.target is None]:
        yield warning(_ABOUT, f"the target lacks {some_names(missing)}", "CREATE SEQUENCE, if something there needs it")
    if not hidden and (count := sum(pair.target is not None for pair in pairs)):
        yield fine(_ABOUT, f"{count} are set at the end")


def set_forward(source: psycopg.Connection, target: psycopg.Connection, pairs: Sequence[PairedSequence]) -> list[str]:
    """Sets the target's sequences to where the source's stand; returns those that were set.

    Args:
        source, target: sessions in autocommit mode.
        pairs: the sequences.

    Raises:
        psycopg.Error: a server refused, for example because the target's sequence ends before the value.
    """
    done = []
    for pair in pairs:
        if pair.target is None:
            continue
        if set_one_forward(target, pair.target, _place(source, pair.source)):
            done.append(pair.target)
    return done


def set_one_forward(target: psycopg.Connection, name: str, wanted: SequencePlace) -> bool:
    """Sets a sequence of the target to a place, unless it is there or beyond; returns whether it was set.

    Raises:
        psycopg.Error: the target refused.
    """
    present = _place(target, name)
    increment, cycles = _shape(target, name)
    if not (wanted != present if cycles else present.is_behind(wanted, increment)):
        return False
    target.execute("SELECT setval(%s::regclass, %s, %s)", (name, wanted.last, wanted.called))
    return True


def _in_target(target: psycopg.Connection, row: Any) -> tuple[bool, str | None]:
    """Returns whether a sequence matters to the target, and its name there."""
    if row.owner is not None:
        values = {"schema": row.owner_schema, "owner": row.owner, "column": row.column}
        owned: Any = target.execute(_OWNED, values).fetchone()
        if not owned[0]:
            return False, None
        if owned[1] is not None:
            return True, str(owned[1])
    named = target.execute(_NAMED, (row.schema, row.name)).fetchone()
    return True, None if named is None else str(named[0])


def _following(source: psycopg.Connection, name: str) -> int | None:
    """Returns the value that a sequence gives next; None for one that counts downwards, or cycles."""
    place = _place(source, name)
    increment, cycles = _shape(source, name)
    if cycles or increment < 0:
        return None
    return place.last + increment if place.called else place.last


def _shape(connection: psycopg.Connection, name: str) -> tuple[int, bool]:
    """Returns by how much a sequence counts, and whether it begins again at its end."""
    row: Any = connection.execute(_SHAPE, (name,)).fetchone()
    return row[0], row[1]


def _place(connection: psycopg.Connection, name: str) -> SequencePlace:
    row: Any = connection.execute(f"SELECT last_value, is_called FROM {name}".encode()).fetchone()
    return SequencePlace(row[0], row[1])
