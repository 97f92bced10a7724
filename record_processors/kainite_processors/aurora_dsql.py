"""The change records of Amazon Aurora DSQL to deltas.

A record has the net effect of one transaction on one row, the transaction's id, and its commit time. Nothing says
where a transaction ends, nor how many records it has: the log completes its unit by the watermark (``uowEnd =
watermark``). So each record is turned by itself, and nothing is remembered from one to the next; a row that came in
several records is fetched (:mod:`kainite.processors.pieces`).

Sources: Amazon Aurora DSQL User Guide, "Change data capture streams", "Understanding CDC records" and "Getting
started with CDC streams", of the general availability in July 2026. README.md says what is known of the records and
what is assumed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from kainite.base.errors import KainiteError
from kainite.processors.frame import Emitted, Json, Record, end_of, refused, run
from kainite.processors.pieces import Ahead, Find, SplitImage
from kainite.processors.searched_stream import no_stream, search_on
from kainite.processors.tables import CurrentTables, TableRule
from kainite.uow import exact_json
from kainite.uow.catalogue.tables import Table
from kainite.uow.delta import Values
from kainite.uow.dsql_values import conversion

Row = dict[str, Json]

CREATE, UPDATE, DELETE = "c", "u", "d"
OPERATIONS: Final = {CREATE: "insert", UPDATE: "update", DELETE: "delete"}
FULL, CHUNKED, FRAGMENT = "full", "chunked", "fragment"
MALFORMED: Final = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError)


class Absent(StrEnum):
    """What a column that a full row leaves out stands for: NULL, or nothing."""

    NULL = "null"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class DsqlRules:
    """The options of the command line.

    Attributes:
        tables: names, keys and columns in the target: DSQL tells neither keys nor types.
        find: returns a row that came in pieces.
        prefix: stands before the names of all units.
        copied_until: nanoseconds since the epoch. The target was filled by a copy that was made while the source went
            on, and had ended by then. Changes that committed up to this time may be in the copy already.
        absent: the value that a column has where a full row leaves the column out.
        left_out: tables of the source whose changes are not wanted.
    """

    tables: CurrentTables
    find: Find = no_stream
    prefix: str = ""
    copied_until: int = 0
    absent: Absent = Absent.NULL
    left_out: frozenset[str] = field(default_factory=frozenset)


def deltas_of(record: Record, rules: DsqlRules) -> list[Emitted]:
    """Returns the delta of a record; none for a piece of a row, and for a table that is left out.

    Raises:
        StreamError: the pieces of a row cannot be looked for now.
    """
    try:
        message = exact_json.loads(record.data)
        if message.get("type") == FRAGMENT:
            return []  # the main record fetches it
        source = message["source"]
        uow, time = f"{rules.prefix}{source['txId']}", int(source["ts_ns"])
        name = _table_of(source)
    except MALFORMED as error:
        return [refused(record.place, f"no change record of Aurora DSQL: {error!r}", record), end_of(record.place, 0)]
    if name in rules.left_out:
        return []
    try:
        return [{"uow": uow, "time": time, **_delta(name, message, rules, overlaps=time <= rules.copied_until)}]
    except MALFORMED as error:
        cause = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        return [refused(uow, f"a change of {name} that cannot be carried: {cause}", record)]


def _table_of(source: Row) -> str:
    return f"{source['schema']}.{source['table']}"


def _delta(name: str, message: Row, rules: DsqlRules, *, overlaps: bool) -> Emitted:
    """Returns the delta without its unit.

    One that overlaps with the copy leaves its row as the transaction left it, whatever the copy has of it: DSQL tells
    rows whole. Only the commit time decides, so a record that comes again is the same delta again.
    """
    operation = OPERATIONS.get(message["op"], "upsert")
    if not overlaps:
        return _carried(name, operation, message, rules)
    if operation == "delete":
        return {**_carried(name, operation, message, rules), "mayMiss": True}
    return _carried(name, "upsert", message, rules)


def _carried(name: str, operation: str, message: Row, rules: DsqlRules) -> Emitted:
    image = _image("before" if operation == "delete" else "after", message, rules)
    rule, table = rules.tables.find(name, image)
    if rule.key is None or (table is not None and not image.keys() <= table.columns.keys()):
        return {"table": rule.table, **_as_it_is(operation, image, rules)}
    row = _converted(image, rule, table)
    if operation != "delete" and rules.absent is Absent.NULL:
        row = {**dict.fromkeys(_left_out(row, table)), **row}
    return {"table": rule.table, **_shaped(operation, row, rule, name)}


def _as_it_is(operation: str, image: Row, rules: DsqlRules) -> Emitted:
    """Returns a change of a table or a column that no file knows, in DSQL's spelling: the daemon knows the target's.

    Where the target lacks it too, the unit fails alone, and is applied when the target has it.
    """
    values = Values.DSQL if rules.absent is Absent.NULL else Values.DSQL_SPARSE
    return {"op": operation, "before" if operation == "delete" else "row": image, "values": values.value}


def _shaped(operation: str, row: Row, rule: TableRule, name: str) -> Emitted:
    """Returns the operation with key and row.

    A key column is written by an update only where there is nothing else: the row's key stays, since a row with
    another key is another row to DSQL.
    """
    if not rule.key:
        if operation not in ("insert", "upsert"):
            raise ValueError(f"{name} has no primary key, so the {operation} does not tell which row it is of")
        return {"op": "insert", "row": row}
    key = {column: row[column] for column in rule.key}
    if operation == "delete":
        return {"op": operation, "key": key}
    if operation == "update":
        row = {column: value for column, value in row.items() if column not in key} or row
    return {"op": operation, "key": key, "row": row}


def _image(which: str, message: Row, rules: DsqlRules) -> Row:
    """Returns the row before or after the change, whole."""
    kind = message.get("type", FULL)
    if kind not in (FULL, CHUNKED):
        raise ValueError(f"records of type {kind!r} are not known")
    split = (message.get("chunked") or {}).get(which) if kind == CHUNKED else None
    image = exact_json.loads(rules.find(_split(split, message)).encode()) if split else message[which]
    if not isinstance(image, dict):
        raise ValueError(f"operation {message['op']!r} without {which!r}")
    return image


def _split(split: Row, message: Row) -> SplitImage:
    committed, made = int(message["source"]["ts_ns"]), int(message["ts_ns"])
    return SplitImage(
        str(split["chunk_id"]), int(split["total_fragments"]), int(split["crc32c"]), committed / 1e9,
        max(committed, made) / 1e9,
    )  # fmt: skip


def _converted(image: Row, rule: TableRule, table: Table | None) -> Row:
    columns = {} if table is None else table.columns
    return {name: _value(value, columns[name].type if name in columns else None, name) for name, value in image.items()}


def _value(value: Json, kind: str | None, name: str) -> Json:
    """Returns a value in the form of its column's type."""
    if value is None or kind is None:
        return value
    try:
        return conversion(kind)(value)
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from error


def _nanoseconds(context: click.Context, parameter: click.Parameter, value: str | None) -> int:
    """Returns a time as nanoseconds since the epoch."""
    if value is None:
        return 0
    try:
        at = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if at.tzinfo is None:
        raise click.BadParameter(f"{value} has no time zone: {value}Z is UTC")
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def _left_out(row: Row, table: Table | None) -> Iterable[str]:
    """Returns the target's columns that may be null and that a row does not have."""
    columns: Iterable[Any] = table.columns.values() if table else ()
    return [one.name for one in columns if one.name not in row and one.nullable and not one.generated]


def expected(records: Iterable[Record], ahead: Ahead, left_out: Collection[str] = ()) -> None:
    """Tells which rows of a batch came in pieces, but for those of tables that are left out."""
    images = []
    for record in records:
        if b"chunked" in record.data:  # few are, and each is parsed again
            with suppress(*MALFORMED):
                message = exact_json.loads(record.data)
                split = message["chunked"].get("before" if message["op"] == DELETE else "after")
                if split and _table_of(message["source"]) not in left_out:
                    images.append(_split(split, message))
    ahead.expect(images)


@click.command()
@click.option("--catalogue", type=click.Path(path_type=Path), help="The target's tables: kainite precedence --write.")
@click.option("--tables", type=click.Path(path_type=Path), help="Tables' names in the target, and keys, as JSON.")
@click.option("--prefix", default="", help="Stands before the names of all units.")
@click.option("--copied-until", callback=_nanoseconds, metavar="TIME",
              help="When a copy of the source that filled the target had ended: 2026-11-23T10:41:00Z.")  # fmt: skip
@click.option("--absent", type=click.Choice([one.value for one in Absent]), default="null", show_default=True,
              help="What a column that a row leaves out stands for: NULL, or nothing.")  # fmt: skip
@click.option("--leave-out", multiple=True, metavar="SCHEMA.TABLE", help="A table whose changes are not wanted.")
@click.option("--stream", help="The stream's name: rows of more than 9 MiB come in pieces, which are read from it.")
@click.option("--region", help="The stream's region.")
@click.option("--endpoint", metavar="URL", help="Kinesis's address, where it is not AWS's own.")
@click.option("--pieces-wait", default=300, show_default=True, type=click.IntRange(0, 3600),
              help="So many seconds after the row's own record its pieces are waited for.")  # fmt: skip
def main(
    catalogue: Path | None,
    tables: Path | None,
    prefix: str,
    copied_until: int,
    absent: str,
    leave_out: tuple[str, ...],
    stream: str | None,
    region: str | None,
    endpoint: str | None,
    pieces_wait: int,
) -> None:
    """Turns Aurora DSQL's change records into deltas, for one shard, under kainite run."""
    try:
        current = CurrentTables(tables, catalogue)
    except KainiteError as error:
        raise click.ClickException(str(error)) from None
    ahead = Ahead(search_on(stream, region, endpoint, pieces_wait)) if stream else None
    find = ahead.find if ahead else no_stream
    rules = DsqlRules(current, find, prefix, copied_until, Absent(absent), frozenset(leave_out))
    tell = partial(expected, ahead=ahead, left_out=rules.left_out) if ahead else lambda records: None
    run(partial(deltas_of, rules=rules), tell)


if __name__ == "__main__":
    main()
