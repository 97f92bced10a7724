"""Turns committed transactions into records of the stream; pure.

A record is a JSON object: one for each change, and one for the end of the unit::

    {"uow":"pg-754-0/17184C0","number":17,"ordinal":0,"count":4,"relation":"public.pgbench_accounts",
     "operation":"update","types":{"aid":23,…},"key":{"aid":"5"},"new":{"aid":"5","abalance":"-17",…}}
    {"uow":"pg-754-0/17184C0","number":17,"end":true,"count":4,"time":1705318200123456000}

``types`` are PostgreSQL's type OIDs; values are PostgreSQL's text, or null. ``key`` holds the
primary key before the change. A column that is missing in ``new`` was not changed.
``time`` is the commit time, nanoseconds since the epoch by the source's clock.

A transaction that PostgreSQL sends again gives the same records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import orjson

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import UNCHANGED, DeleteMessage, InsertMessage, Relation, UpdateMessage, Values
from kainite.capture.postgresql.transactions import SourceChange, SourceTransaction

Texts: TypeAlias = dict[str, str | None]

_OPERATIONS: Final = {InsertMessage: "insert", UpdateMessage: "update", DeleteMessage: "delete"}


def records_of(transaction: SourceTransaction, number: int) -> Iterator[bytes]:
    """Yields a transaction's records: its changes, then its end.

    Args:
        transaction: a transaction with at least one change.
        number: the transaction's number, from 1 without gaps.

    Raises:
        SourceError: a table's replica identity does not say what its primary key is.
    """
    unit = {"uow": transaction.uow, "number": number}
    count = len(transaction.changes)
    bodies = [_body(change, ordinal, count) for ordinal, change in enumerate(transaction.changes)]
    for body in [*bodies, {"end": True, "count": count, "time": transaction.commit_us * 1000}]:
        yield orjson.dumps({**unit, **body})


def _body(change: SourceChange, ordinal: int, count: int) -> dict[str, Any]:
    relation = change.relation
    key, new = _key_and_new(change)
    sent = key.keys() | new.keys()
    return {
        "ordinal": ordinal,
        "count": count,
        "relation": f"{relation.schema}.{relation.name}",
        "operation": _OPERATIONS[type(change.row)],
        "types": {column.name: column.type_oid for column in relation.columns if column.name in sent},
        "key": key,
        "new": new,
    }


def _key_and_new(change: SourceChange) -> tuple[Texts, Texts]:
    relation, row = change.relation, change.row
    _check_identity(relation)
    match row:
        case InsertMessage():
            return _texts(relation, row.new, key_only=True), _texts(relation, row.new)
        case UpdateMessage():
            return _texts(relation, row.key or row.new, key_only=True), _texts(relation, row.new)
        case DeleteMessage():
            return _texts(relation, row.key or (), key_only=True), {}


def _check_identity(relation: Relation) -> None:
    """Raises SourceError where the flagged columns are not the primary key."""
    # With FULL or an index the flags do not mark the primary key, and no other part of the message names it.
    if relation.replica_identity not in "dn":
        raise SourceError(
            f"table {relation.schema}.{relation.name} has replica identity {relation.replica_identity!r}:"
            " the extractor reads the primary key from it; ALTER TABLE … REPLICA IDENTITY DEFAULT"
        )


def _texts(relation: Relation, values: Values, *, key_only: bool = False) -> Texts:
    if len(values) != len(relation.columns):
        raise SourceError(f"pgoutput: {len(values)} values for {len(relation.columns)} columns of {relation.name}")
    pairs = zip(relation.columns, values, strict=True)
    return {c.name: v for c, v in pairs if v is not UNCHANGED and (c.is_key or not key_only)}
