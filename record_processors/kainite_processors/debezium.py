"""Debezium's change events, as Debezium Server puts them on Kinesis, to deltas and ends of units.

A record's data is the event's value in JSON, with or without its schema; its partition key is the
event's key in JSON. A change names its transaction and its place in it (the ``transaction`` block);
the transaction's END event says how many changes it has. So each record can be turned by itself,
and nothing is remembered from one to the next.

Without transaction metadata the ``source`` block names the transaction, and its commit time; nothing says where it
ends. The log then ends its unit by the watermark (:func:`_by_source`).

Sources: Debezium's documentation of its connectors ("Transaction metadata", "Data change events")
and of Debezium Server; ``KinesisChangeConsumer`` for key and tombstone, ``LogicalDecodingMessageMonitor`` for what the
pages do not say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import click

from kainite.base.errors import KainiteError, SettingsError
from kainite.processors.frame import Emitted, Json, Record, end_of, refused, run
from kainite.processors.tables import Tables, read_tables
from kainite.uow import exact_json
from kainite_processors.debezium_values import Row, Schemas, row_of

OPERATIONS: Final = {"c": "insert", "u": "update", "d": "delete", "r": "upsert"}
SNAPSHOT: Final = "r"
MESSAGE: Final = "m"
# The "tables" that a transaction's END counts pg_logical_emit_message under: the name that Debezium means, and the
# ones that 3.6 writes, one for each message.
MESSAGES: Final = re.compile(r"LOGICAL_DECODING_MESSAGE|io\.debezium\.[\w.$]+\$LogicalDecodingMessageId@[0-9a-f]+")
# PostgreSQL's ids have the event's own position behind the transaction's number: 571:53195829.
WITH_POSITION: Final = re.compile(r"(\d+):\d+")
LAST_NUMBER: Final = re.compile(r"\d+$")
MALFORMED: Final = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class DebeziumRules:
    """The options of the command line.

    Attributes:
        tables: names in the target, and keys where the partition key does not tell them.
        prefix: stands before the names of all units.
        lone_changes: a change without a transaction is a unit of its own, not an error.
        by_source: transactions are those of the ``source`` block, with its time.
    """

    tables: Tables = field(default_factory=Tables)
    prefix: str = ""
    lone_changes: bool = False
    by_source: bool = False


def deltas_of(record: Record, rules: DebeziumRules) -> list[Emitted]:
    """Returns the deltas and ends of a record; none for a tombstone, a heartbeat, a change of schema.

    Raises:
        SettingsError: Debezium does not say what transaction a change belongs to.
    """
    if not record.data.strip():
        return []  # a tombstone: the delete came before it
    try:
        event, schemas = _without_schema(exact_json.loads(record.data))
        if event is None:
            return []
        if "status" in event:
            return _boundary(event, rules)
        return _change(event, schemas, record, rules) if "op" in event else _other(event)
    except MALFORMED as error:
        return _alone(record, refused(record.place, f"no Debezium event: {error!r}", record), count=0)


def _without_schema(value: Json) -> tuple[Json, Schemas]:
    """Returns the event itself, and the schemas of a row's columns where they come with the event."""
    if not (isinstance(value, dict) and value.keys() == {"schema", "payload"}):
        return value, {}
    fields = {f["field"]: f for f in (value["schema"] or {}).get("fields", ())}
    row = fields.get("after") or fields.get("before") or {}
    return value["payload"], {column["field"]: column for column in row.get("fields", ())}


def _boundary(event: Row, rules: DebeziumRules) -> list[Emitted]:
    """Returns the end of a transaction.

    END says how many changes came. BEGIN ends nothing, nor does a transaction that changed no captured table.
    """
    if event["status"] != "END":
        return []
    collections: Iterable[Row] = event.get("data_collections") or ()
    messages = sum(part["event_count"] for part in collections if MESSAGES.fullmatch(part["data_collection"]))
    count = event["event_count"] - messages
    return [end_of(_unit(event["id"], rules), count)] if count else []


def _other(event: Row) -> list[Emitted]:
    if event.keys() == {"ts_ms"} or "ddl" in event or "tableChanges" in event:
        return []
    raise ValueError("neither a change nor a transaction's boundary")


def _change(event: Row, schemas: Schemas, record: Record, rules: DebeziumRules) -> list[Emitted]:
    transaction = event.get("transaction")
    if event["op"] == MESSAGE:
        return []
    if rules.by_source and event["op"] != SNAPSHOT:
        return _by_source(event, schemas, record, rules)
    if transaction is None:
        delta = _delta(event, schemas, record, rules)
        _check_lone(event, rules)
        return _alone(record, delta | {"uow": record.place}, count=1)
    uow = _unit(transaction["id"], rules)
    try:
        place = {"uow": uow, "ordinal": int(transaction["total_order"]) - 1}
        return [_delta(event, schemas, record, rules) | place]
    except MALFORMED as error:
        return [refused(uow, _why(event, error), record)]


def _by_source(event: Row, schemas: Schemas, record: Record, rules: DebeziumRules) -> list[Emitted]:
    """Returns a change of the transaction that the ``source`` block names, with its commit time.

    Raises:
        SettingsError: the block names no transaction.
    """
    source = event["source"]
    uow = {"uow": rules.prefix + _source_transaction(source)}
    try:
        place = {"time": _commit_ns(source), **_ordinal(source, event["op"])}
        return [{**_delta(event, schemas, record, rules), **uow, **place}]
    except MALFORMED as error:
        return [refused(uow["uow"], _why(event, error), record)]


def _why(event: Row, error: Exception) -> str:
    source = event.get("source")
    table = source.get("table") if isinstance(source, dict) else None
    return f"a change ({event['op']}) of {table} that cannot be carried: {error!r}"


def _source_transaction(source: Row) -> str:
    """Returns the transaction's name: PostgreSQL's number, or the GTID of MySQL and MariaDB.

    The number at a GTID's end is filled up, so that transactions of the same second have names in the order of commits.
    """
    if gtid := source.get("gtid"):
        return LAST_NUMBER.sub(lambda number: number[0].zfill(20), str(gtid))
    if source.get("txId") is None or source.get("lsn") is None:
        raise SettingsError(
            "a change's source block has neither PostgreSQL's txId and lsn nor a GTID: leave --source-transactions "
            "out, and set provide.transaction.metadata=true at Debezium"
        )
    return str(source["txId"])


def _commit_ns(source: Row) -> int:
    """Returns the commit time in nanoseconds since the epoch, as exactly as the event has it."""
    units = (("ts_ns", 1), ("ts_us", 1000), ("ts_ms", 1_000_000))
    return next(int(source[name]) * factor for name, factor in units if source.get(name) is not None)


def _ordinal(source: Row, operation: str) -> Row:
    """Returns the change's place in its transaction.

    PostgreSQL has one place in its log for all rows of a COPY, so its inserts are told apart by what they insert.
    """
    if source.get("gtid"):
        return {"ordinal": int(source["pos"]) << 20 | int(source.get("row") or 0)}
    return {} if operation == "c" else {"ordinal": int(source["lsn"])}


def _check_lone(event: Row, rules: DebeziumRules) -> None:
    if event["op"] != SNAPSHOT and not rules.lone_changes:
        raise SettingsError(
            "a change names no transaction: set provide.transaction.metadata=true at Debezium, or give "
            "--source-transactions (with uowEnd=watermark), or --lone-changes to make each such change a transaction"
        )


def _alone(record: Record, delta: Emitted, count: int) -> list[Emitted]:
    """Returns the name of a unit that has this record only."""
    return [delta, end_of(record.place, count)]


def _unit(transaction: str, rules: DebeziumRules) -> str:
    match = WITH_POSITION.fullmatch(transaction)
    return rules.prefix + (match[1] if match else transaction)


def _delta(event: Row, schemas: Schemas, record: Record, rules: DebeziumRules) -> Emitted:
    """Returns the delta without its unit.

    Raises:
        ValueError: an operation that a relational target has no delta for (a truncation), or a
            value outside of what it can hold.
    """
    if event["op"] not in OPERATIONS:
        raise ValueError(f"operation {event['op']!r} has no delta")
    rule = rules.tables.find(_table(event["source"]))
    before, after = (row_of(event.get(image), schemas) for image in ("before", "after"))
    key = _key(rule.key, record.partition_key, {**after, **before}, schemas)
    operation = OPERATIONS[event["op"]] if key or event["op"] != SNAPSHOT else "insert"
    if operation == "update":
        after = {name: value for name, value in after.items() if name not in key or key[name] != value} or after
    # Nulls say nothing: for columns outside the replica identity they are no old values.
    old = {name: value for name, value in before.items() if value is not None}
    parts = {"key": key, "row": {} if operation == "delete" else after, "before": old}
    return {"table": rule.table, "op": operation} | {name: part for name, part in parts.items() if part}


def _table(source: Row) -> str:
    """Returns the table's name with its schema, or its database where the source has no schemas (MySQL, MariaDB)."""
    space = source.get("schema") or source.get("db")
    return f"{space}.{source['table']}" if space else str(source["table"])


def _key(columns: tuple[str, ...] | None, partition_key: str, row: Row, schemas: Schemas) -> Row:
    """Returns the primary key's values before the change: of the named columns, or else Debezium's own key."""
    if columns is not None:
        return {name: row[name] for name in columns}
    try:
        key, _ = _without_schema(exact_json.loads(partition_key.encode()))
    except ValueError:
        return {}  # debezium.sink.kinesis.null.key: the table has no key
    return row_of(key, schemas) if isinstance(key, dict) else {}


@click.command()
@click.option("--catalogue", type=click.Path(path_type=Path), help="The target's tables: kainite precedence --write.")
@click.option("--tables", type=click.Path(path_type=Path), help="Tables' names in the target, and keys, as JSON.")
@click.option("--prefix", default="", help="Stands before the names of all units.")
@click.option("--lone-changes", is_flag=True, help="A change without a transaction is a unit of its own.")
@click.option("--source-transactions", is_flag=True, help="Transactions without metadata: for uowEnd=watermark.")
def main(
    catalogue: Path | None, tables: Path | None, prefix: str, lone_changes: bool, source_transactions: bool
) -> None:
    """Turns Debezium's events into deltas, for one shard, under kainite run."""
    try:
        rules = DebeziumRules(read_tables(tables, catalogue), prefix, lone_changes, source_transactions)
    except KainiteError as error:
        raise click.ClickException(str(error)) from None
    run(partial(deltas_of, rules=rules))


if __name__ == "__main__":
    main()
