"""The records of AWS DMS's Kinesis target to deltas and ends of units.

DMS sends no event for the end of a transaction. But each transaction's records are numbered from
one, and a record of the next transaction names the one before it and its last record's number
(``prev-transaction-id``, ``prev-transaction-record-id``): that is the end, and the count. So each
record can be turned by itself, nothing is remembered from one to the next, and a transaction ends
when the next one begins.

Sources: AWS DMS User Guide, "Using Amazon Kinesis Data Streams as a target" (message format, before
image) and API reference, ``KinesisSettings``; records of a PostgreSQL task that the project
commons-codec has recorded for the tests of its DMS transform.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import click

from kainite.base.errors import KainiteError, SettingsError
from kainite.processors.frame import Emitted, Json, Record, end_of, refused, run
from kainite.processors.tables import Tables, read_tables
from kainite.uow import exact_json

Row = dict[str, Json]

LOAD: Final = "load"
OPERATIONS: Final = {LOAD: "upsert", "insert": "insert", "update": "update", "delete": "delete"}
MALFORMED: Final = (ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class DmsRules:
    """The options of the command line.

    Attributes:
        tables: names in the target, and keys: DMS does not tell them.
        prefix: stands before the names of all units.
        before_image: the field that holds old values (``BeforeImageSettings``, ``FieldName``).
    """

    tables: Tables = field(default_factory=Tables)
    prefix: str = ""
    before_image: str = "before-image"


def deltas_of(record: Record, rules: DmsRules) -> list[Emitted]:
    """Returns the deltas and ends of a record; a control record has no delta.

    Raises:
        SettingsError: DMS does not give a record's place in its transaction.
    """
    try:
        message = exact_json.loads(record.data)
        metadata = message["metadata"]
        ends = _ends(metadata, rules)
        if metadata["record-type"] == "control":
            return ends
        if metadata["operation"] == LOAD:
            return [_delta(message, rules) | {"uow": record.place}, end_of(record.place, 1)]
        uow = _unit(metadata["transaction-id"], rules)
    except MALFORMED as error:
        return [refused(record.place, f"no record of AWS DMS: {error!r}", record), end_of(record.place, 0)]
    try:
        return [*ends, _delta(message, rules) | {"uow": uow, "ordinal": _ordinal(metadata)}]
    except MALFORMED as error:
        cause = f"a change of {metadata.get('table-name')} that cannot be carried: {error!r}"
        return [*ends, refused(uow, cause, record)]


def _ends(metadata: Row, rules: DmsRules) -> list[Emitted]:
    """Returns the end of the previous transaction; the first transaction of a task has no previous one."""
    before = metadata.get("prev-transaction-id")
    if before is None or before == metadata.get("transaction-id"):
        return []
    return [end_of(_unit(before, rules), metadata["prev-transaction-record-id"])]


def _unit(transaction: Json, rules: DmsRules) -> str:
    return f"{rules.prefix}{transaction}"


def _ordinal(metadata: Row) -> int:
    number = metadata.get("transaction-record-id")
    if number is None:
        raise SettingsError(
            "a change has no transaction-record-id: set IncludeTransactionDetails=true "
            "in the KinesisSettings of the endpoint"
        )
    return int(number) - 1


def _delta(message: Row, rules: DmsRules) -> Emitted:
    """Returns the delta without its unit; without its key, where no file says it: the daemon takes it from the target.

    A table that comes later would end the processor otherwise, and with it its shard. So its units fail alone, and are
    applied when the target has it.
    """
    metadata, data = message["metadata"], message["data"]
    name = ".".join(part for part in (metadata.get("schema-name"), metadata["table-name"]) if part)
    rule = rules.tables.find(name)
    operation = OPERATIONS[metadata["operation"]]
    before = dict(message.get(rules.before_image) or {})
    key = {column: before.get(column, data.get(column)) for column in rule.key or ()}
    row, old = _images(operation, key, data, before)
    if operation == "upsert" and rule.key == ():
        operation = "insert"
    parts = {"key": key, "row": row, "before": old}
    return {"table": rule.table, "op": operation} | {name: part for name, part in parts.items() if part}


def _images(operation: str, key: Row, data: Row, before: Row) -> tuple[Row, Row]:
    """Returns new and old values.

    A delete has its old values in the data. An update does not write a key that stays.
    Nulls say nothing of the old values: DMS fills up with them what the source's log does not have.
    """
    if operation == "delete":
        return {}, {name: value for name, value in {**data, **before}.items() if value is not None}
    old = {name: value for name, value in before.items() if value is not None}
    if operation != "update":
        return data, old
    return {name: value for name, value in data.items() if name not in key or key[name] != value} or data, old


@click.command()
@click.option("--catalogue", type=click.Path(path_type=Path), help="The target's tables: kainite precedence --write.")
@click.option("--tables", type=click.Path(path_type=Path), help="Tables' names in the target, and keys, as JSON.")
@click.option("--prefix", default="", help="Stands before the names of all units.")
@click.option("--before-image", default="before-image", show_default=True, help="The field that holds old values.")
def main(catalogue: Path | None, tables: Path | None, prefix: str, before_image: str) -> None:
    """Turns AWS DMS's records into deltas, for one shard, under kainite run."""
    try:
        rules = DmsRules(read_tables(tables, catalogue), prefix, before_image)
    except KainiteError as error:
        raise click.ClickException(str(error)) from None
    run(partial(deltas_of, rules=rules))


if __name__ == "__main__":
    main()
