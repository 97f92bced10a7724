"""Turns the changes of committed transactions into records of the stream; pure.

A record is a JSON object: one for each change, and one for the end of the unit::

    {"uow":"pg-754-0/17184C0","number":17,"ordinal":0,"relation":"public.pgbench_accounts",
     "operation":"update","types":{"aid":23,…},"key":{"aid":"5"},"new":{"aid":"5","abalance":"-17",…}}
    {"uow":"pg-754-0/17184C0","number":17,"end":true,"count":4,"time":1705318200123456000}

``types`` are PostgreSQL's type OIDs; values are PostgreSQL's text, or null. ``key`` holds the
primary key before the change. A column that is missing in ``new`` was not changed. ``old`` is the row before the
change, where the source sends it (REPLICA IDENTITY FULL). ``time`` is the commit time, nanoseconds since the epoch by
the source's clock. What stands beside ``relation`` and ``operation`` may come in pieces
(:mod:`~kainite.capture.row_pieces`).

A change that cannot become a delta has ``refused``, the reason, in place of ``key`` and ``new``: its unit fails with
that reason, and the extraction goes on. The WAL is decoded with the catalogue of its time, so no command on the source
could make such a change readable afterwards.

================  =============================================================================================
replica identity  an update or delete
================  =============================================================================================
DEFAULT           names the primary key
FULL              sends the whole old row; the catalogue says which columns are the primary key
USING INDEX       names the index's columns: enough where these contain the primary key, else refused
================  =============================================================================================

With ``publish_via_partition_root`` a change comes under the whole's name, with the whole's replica identity, yet the
partition's own identity decides which old values are there: those of other columns come as NULL, and nothing in the
change tells. So of a partitioned table a NULL is no old value, but one that is not known; and where the catalogue has a
partition whose identity lacks the primary key, updates and deletes of the whole are refused.

A ``TRUNCATE`` names no row: it is refused, or, where it is to be applied, its ``key`` and ``new`` are empty.

A change that PostgreSQL sends again gives the same record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import (
    UNCHANGED,
    DeleteMessage,
    InsertMessage,
    LostChange,
    Relation,
    TruncateMessage,
    UpdateMessage,
    Values,
)
from kainite.capture.postgresql.transactions import RowChange, SourceChange

Texts: TypeAlias = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class SourceKey:
    """What the source's catalogue has of a table's primary key now.

    Attributes:
        columns: the names of its columns; empty for a table without one.
        partitioned: whether the table is a partitioned one.
        silent: a partition whose replica identity does not tell the primary key; None where there is none.
    """

    columns: frozenset[str] = frozenset()
    partitioned: bool = False
    silent: str | None = None


SourceKeyOf: TypeAlias = Callable[[int], SourceKey]
"""Returns a table's primary key, by the table's OID."""


_OPERATIONS: Final = {
    InsertMessage: "insert",
    UpdateMessage: "update",
    DeleteMessage: "delete",
    TruncateMessage: "truncate",
}


class _UncarriedError(Exception):
    """A change that no record can say as one of a row."""


def change_record(
    unit: Mapping[str, Any], ordinal: int, change: SourceChange, key_of: SourceKeyOf, *, truncates: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the record of a change in two parts: where the change belongs, and what the row is.

    Args:
        unit: the name and the number of the transaction's unit.
        ordinal: the change's place in its transaction, from 0.
        change: the change.
        key_of: asked for the tables' primary keys.
        truncates: whether TRUNCATE is carried, and not refused.
    """
    relation = change.relation
    operation = change.row.operation if isinstance(change.row, LostChange) else _OPERATIONS[type(change.row)]
    place = {**unit, "ordinal": ordinal, "relation": f"{relation.schema}.{relation.name}", "operation": operation}
    if truncates and isinstance(change.row, TruncateMessage):
        return place, {"types": {}, "key": {}, "new": {}}
    try:
        return place, _row(change, key_of)
    except _UncarriedError as error:
        return place, {"refused": str(error)}


def _row(change: SourceChange, key_of: SourceKeyOf) -> dict[str, Any]:
    """Returns the part of a record that says the row.

    Raises:
        _UncarriedError: the change does not say which row it means.
    """
    relation, row = change.relation, change.row
    if isinstance(row, TruncateMessage):
        raise _UncarriedError("TRUNCATE names no rows")
    if isinstance(row, LostChange):
        raise _UncarriedError(row.cause)
    known = key_of(relation.oid)
    names = _key_columns(relation, row, known)
    match row:
        case InsertMessage():
            key, new = _texts(relation, row.new, names), _texts(relation, row.new)
        case UpdateMessage():
            key, new = _texts(relation, row.key or row.old or row.new, names), _texts(relation, row.new)
        case DeleteMessage():
            key, new = _texts(relation, row.key or row.old or (), names), {}
    old = {} if isinstance(row, InsertMessage) or row.old is None else {"old": _old(relation, row.old, known)}
    sent = key.keys() | new.keys() | old.get("old", {}).keys()
    types = {column.name: column.type_oid for column in relation.columns if column.name in sent}
    return {"types": types, "key": key, "new": new, **old}


def _key_columns(relation: Relation, row: RowChange, known: SourceKey) -> Collection[str]:
    """Returns the names of the primary key's columns.

    Raises:
        _UncarriedError: the change of a row does not tell the row's primary key.
    """
    if known.silent is not None and not isinstance(row, InsertMessage):
        raise _UncarriedError(
            f"REPLICA IDENTITY USING INDEX of the partition {known.silent} does not tell the primary key"
            f" ({', '.join(sorted(known.columns))}): ALTER TABLE {known.silent} REPLICA IDENTITY DEFAULT helps later"
            " changes"
        )
    flagged = {column.name for column in relation.columns if column.is_key}
    if relation.replica_identity in "dn":
        return flagged
    # With FULL all columns are flagged, with an index those of the index: the message does not say what the key is.
    if isinstance(row, InsertMessage):
        return _key_of_insert(relation, known.columns)
    if known.columns and known.columns <= flagged:
        return known.columns
    identity = "FULL" if relation.replica_identity == "f" else "USING INDEX"
    if not known.columns:
        raise _UncarriedError(f"the table has no primary key (REPLICA IDENTITY {identity})")
    raise _UncarriedError(
        f"REPLICA IDENTITY {identity} does not tell the primary key ({', '.join(sorted(known.columns))}):"
        f" ALTER TABLE {relation.schema}.{relation.name} REPLICA IDENTITY DEFAULT helps later changes"
    )


def _key_of_insert(relation: Relation, key: Collection[str]) -> Collection[str]:
    """Returns the key's columns, all of which an insert has; the key is that of now, and the row that of its time.

    Raises:
        _UncarriedError: the row was inserted before the table had a column of the key.
    """
    if lacking := set(key) - {column.name for column in relation.columns}:
        raise _UncarriedError(
            f"the table's primary key ({', '.join(sorted(key))}) has been changed since: the row has no"
            f" {', '.join(sorted(lacking))}"
        )
    return key


def _old(relation: Relation, values: Values, known: SourceKey) -> Texts:
    """Returns the old row's values, as far as they are known."""
    texts = _texts(relation, values)
    return {name: text for name, text in texts.items() if text is not None} if known.partitioned else texts


def _texts(relation: Relation, values: Values, only: Collection[str] | None = None) -> Texts:
    """Returns the values that were sent, by their columns' names; those of ``only``, where it is given."""
    if len(values) != len(relation.columns):
        raise SourceError(f"pgoutput: {len(values)} values for {len(relation.columns)} columns of {relation.name}")
    pairs = zip(relation.columns, values, strict=True)
    return {c.name: v for c, v in pairs if v is not UNCHANGED and (only is None or c.name in only)}
