"""Makes deltas that set rows of the target to what the source has, under a snapshot of the source.

A row that the source has becomes an upsert of all its columns, a row that it lacks a delete that need not meet a row.
So it does not matter what became of the row in the target since it was compared. Deletes come first: in the target a
key may be equal to another one that the source tells apart (``citext``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import psycopg
from msgspec.structs import replace
from psycopg import sql

from kainite.base.errors import LogRequestError
from kainite.processors.postgresql_texts import as_json, conversions
from kainite.replicate.canonical_texts import TextKind
from kainite.replicate.compared_tables import ComparedTable, compared_table, row_query
from kainite.replicate.ends import source_session
from kainite.replicate.known_rows import Explanation
from kainite.replicate.paired_rows import PairedRows, PostgresRows
from kainite.replicate.verify_report import RowReport, VerifyReport
from kainite.targets.postgresql.text_forms import as_local_settings
from kainite.uow.delta import Delta, Operation
from kainite.uow.signature import Signatures

MOST_ROWS: Final = 10_000
"""Rows that are repaired at most: beyond that a table is better loaded anew, and a unit would not fit a request."""

_FOUND: Final[Mapping[TextKind, tuple[str, ...]]] = {
    TextKind.PADDED: ("character(", "bpchar"),
    TextKind.NUMBER: ("smallint", "integer", "bigint", "numeric", "real", "double precision", "oid"),
    TextKind.SINGLE: ("real",),
    TextKind.DOUBLE: ("real", "double precision"),
    TextKind.DAY: ("date", "timestamp"),
    TextKind.MOMENT: ("date", "timestamp", "time", "interval"),
    TextKind.BYTES: ("bytea",),
    TextKind.ADDRESS: ("inet",),
    TextKind.UUID: ("uuid",),
}
"""What PostgreSQL's types begin with to which a value is equal whose text was changed in such a way."""

_SETTINGS: Final = f"""
    SELECT {as_local_settings()}, set_config('search_path', '', true), set_config('statement_timeout', '0', true)"""


def to_repair(report: VerifyReport) -> tuple[RowReport, ...]:
    """Returns the rows that differ and that no unit explains.

    Raises:
        LogRequestError: they cannot be repaired: they are too many, or a table has no primary key.
    """
    rows = tuple(row for row in report.rows if row.why is Explanation.NONE)
    count = sum(table.different for table in report.tables)
    if keyless := sorted({row.table for row in rows if not row.key}):
        raise LogRequestError(
            f"{', '.join(keyless)}: nothing tells the rows of a table without a primary key apart; load it anew"
            " (kainite replicate reload), or repair other tables alone (--table)"
        )
    if count > len(rows):
        raise LogRequestError(
            f"{count:,} rows differ, and at most {MOST_ROWS:,} are repaired: load the table anew"
            " (kainite replicate reload), or repair other tables alone (--table)"
        )
    return rows


def read_deltas(
    url: str,
    snapshot: str,
    tables: Mapping[str, ComparedTable],
    rows: Sequence[RowReport],
    pairs: Mapping[str, PairedRows] | None = None,
) -> tuple[Delta, ...]:
    """Returns the deltas of rows, as the source has these rows in a snapshot.

    Args:
        url: the source.
        snapshot: the snapshot's name.
        tables: the rows' tables, by name.
        rows: the rows.
        pairs: how a row's key is spelled, by table, where both sides are compared by texts made here.

    Raises:
        SourceError: the source does not answer, or the snapshot is gone.
        LogRequestError: nothing tells which row of the source a row of the target is.
    """
    spelled = {} if pairs is None else {row.table: pairs[row.table] for row in rows}
    _check_keys(spelled.values())
    with source_session(url, "kainite verify repair") as session:
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        session.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
        session.execute(_SETTINGS.encode())
        found = [_delta(session, tables[row.table], row, spelled.get(row.table)) for row in rows]
    return in_order(found)


def in_order(deltas: Iterable[Delta]) -> tuple[Delta, ...]:
    """Returns a repair's deltas, deletes first, each with its place."""
    found = sorted(deltas, key=lambda delta: delta.op is not Operation.DELETE)
    return tuple(replace(delta, ordinal=place) for place, delta in enumerate(found))


def alone(pair: PairedRows) -> ComparedTable:
    """Returns how rows of a PostgreSQL source are read whose target is another kind of database."""
    assert isinstance(pair.source, PostgresRows), "the source is PostgreSQL"
    found = compared_table(pair.source.table, pair.source.table)
    assert isinstance(found, ComparedTable), "a table has the columns that it has"
    return found


def _delta(session: psycopg.Connection, table: ComparedTable, row: RowReport, pair: PairedRows | None) -> Delta:
    texts, types = _present(session, table, row, by_text=pair is None)
    if texts is None or (pair is not None and _key(pair, texts) != dict(row.key)):
        return Delta(table.name, Operation.DELETE, dict(row.key), {}, {}, may_miss=True)
    new = as_json(texts, conversions(types))
    return Delta(table.name, Operation.UPSERT, {name: new[name] for name in table.key_columns}, new, {})


def _present(
    session: psycopg.Connection, table: ComparedTable, row: RowReport, *, by_text: bool
) -> tuple[dict[str, str | None] | None, dict[str, int]]:
    """Returns the texts of the row that has a key, None where there is none, and the OIDs of the columns' types."""
    key = [row.key[name] for name in table.key_columns]
    query = row_query(table, table.source, by_text=by_text).encode()
    result = session.execute(query, (*key, *(key if by_text else ())) * len(table.source.parts)).pgresult
    if result is None or not result.ntuples:
        return None, {}
    values = [result.get_value(0, place) for place in range(len(table.columns))]
    texts = {name: None if value is None else value.decode() for name, value in zip(table.columns, values, strict=True)}
    return texts, {name: result.ftype(place) for place, name in enumerate(table.columns)}


def _check_keys(pairs: Iterable[PairedRows]) -> None:
    """Refuses tables whose keys have texts, as both sides spell them, by which PostgreSQL does not find a row.

    A row that is not found would be taken for one that the source lacks, and be deleted in the target.

    Raises:
        LogRequestError: a key has such texts.
    """
    for pair in pairs:
        kinds, types = dict(zip(pair.columns, pair.kinds, strict=True)), pair.source.types
        odd = [f"{name}: {types[name]}" for name in pair.key_columns if not _finds(types[name], kinds[name])]
        if odd:
            raise LogRequestError(
                f"{pair.name}: rows are not repaired whose key the source does not find by its text in the target"
                f" ({', '.join(odd)}): load the table anew (kainite replicate reload), or repair other tables alone"
                " (--table)"
            )


def _finds(kind: str, text: TextKind) -> bool:
    """Tells whether each value of a type of PostgreSQL is equal to the text that both sides compare."""
    return kind != "boolean" if text is TextKind.AS_IT_IS else kind.startswith(_FOUND.get(text, ()))


def _key(pair: PairedRows, texts: Mapping[str, str | None]) -> dict[str, str | None]:
    """Returns the texts of a row's key as both sides spell them."""
    row = pair.canonical()([texts[name] for name in pair.columns])
    return {name: row[pair.columns.index(name)] for name in pair.key_columns}


def without(
    deltas: Sequence[Delta], signatures: Signatures, met: Collection[int]
) -> tuple[tuple[Delta, ...], tuple[Delta, ...]]:
    """Separates deltas into those that can be applied without certain rows, and the others.

    A delta that reads or writes what another one writes that is left out, such as a child of a row, is left out too.

    Args:
        deltas: the deltas.
        signatures: tells what each touches.
        met: what the rows have that are to be left out.

    Raises:
        DeltaError: a delta does not fit the target's catalogue.
    """
    touched = [(delta, *signatures.of([delta])) for delta in deltas]
    bad, left_out = set(met), set[int]()
    while True:
        more = {place for place, (_, written, read) in enumerate(touched) if not bad.isdisjoint({*written, *read})}
        if more <= left_out:
            break
        left_out |= more
        bad.update(*(touched[place][1] for place in more))
    kept = tuple(delta for place, delta in enumerate(deltas) if place not in left_out)
    return kept, tuple(delta for place, delta in enumerate(deltas) if place in left_out)
