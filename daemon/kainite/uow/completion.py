"""Completes a delta whose source tells neither its table's key nor its values' types, when the table is known. Pure.

A record processor cannot always complete a delta itself: some sources name no key (AWS DMS) and no types (Aurora DSQL),
and their processors look both up in the target's catalogue. A table that comes later is not in it. Then the processor
emits the delta as the source has it, without ``key``, and with ``values`` where the values are the source's own
spelling. It is a misfit while the target lacks the table (:mod:`kainite.uow.signing`): it is kept as it was emitted,
its unit fails alone, and is judged anew when the table is there.

A delta without a key: the key's values are those of ``before``, or else of ``row``. An update does not write a key
that stays, unless it writes nothing else. An upsert into a table without a primary key is an insert.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from kainite.base.errors import DeltaError
from kainite.uow.catalogue.tables import Table
from kainite.uow.delta import Delta, Json, Operation, Row, Values
from kainite.uow.dsql_values import conversion


def is_complete(delta: Delta) -> bool:
    """Tells whether the delta has all that the source did not leave to the catalogue."""
    return not delta.values and (bool(delta.key) or delta.op is Operation.INSERT)


def completed(delta: Delta, table: Table) -> Delta:
    """Returns the delta with its key, and with values as the table's columns take them.

    Raises:
        DeltaError: a value is none of its column's type.
    """
    if delta.values:
        delta = _in_the_tables_types(delta, table)
    return delta if is_complete(delta) else _with_key(delta, table)


def _with_key(delta: Delta, table: Table) -> Delta:
    if not table.primary_key:
        return replace(delta, op=Operation.INSERT) if delta.op is Operation.UPSERT else delta
    known = {**delta.row, **{name: value for name, value in delta.before.items() if value is not None}}
    key = {name: known[name] for name in table.primary_key if name in known}
    row = delta.row
    if delta.op is Operation.UPDATE:
        row = {name: value for name, value in row.items() if name not in key or value != key[name]} or row
    return replace(delta, key=key, row=row)


def _in_the_tables_types(delta: Delta, table: Table) -> Delta:
    key, row, before = map(partial(_converted, table=table), (delta.key, delta.row, delta.before))
    if delta.values is Values.DSQL and delta.op is not Operation.DELETE:
        columns = table.columns.values()
        absent = [one.name for one in columns if one.name not in row and one.nullable and not one.generated]
        row = {**dict.fromkeys(absent), **row}
    return replace(delta, key=key, row=row, before=before, values=None)


def _converted(image: Row, table: Table) -> dict[str, Json]:
    return {name: _value(name, value, table) for name, value in image.items()}


def _value(name: str, value: Json, table: Table) -> Json:
    if value is None or name not in table.columns:
        return value
    try:
        return conversion(table.columns[name].type)(value)
    except ValueError as error:
        raise DeltaError(f"column {name!r} of {table.name!r}: {error}") from error
