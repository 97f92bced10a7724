"""The catalogue as a JSON file, so that a shard host needs neither the target nor its driver.

``kainite precedence --write FILE`` writes the file. People can read and compare it:
it is indented, tables are in order of name, defaults are left out. ``kainite_catalogue`` is its version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

import orjson

from kainite.base.errors import CatalogueError
from kainite.uow.catalogue.tables import Action, Catalogue, Column, ForeignKey, Table, TypeFamily, UniqueKey
from kainite.uow.delta import Json

VERSION = 1
T = TypeVar("T")


def write_catalogue(catalogue: Catalogue, path: Path) -> None:
    """Writes the file, replacing it as a whole.

    Raises:
        CatalogueError: the file cannot be written.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_bytes(dumps(catalogue))
        beside.replace(path)
    except OSError as error:
        raise CatalogueError(f"catalogue {path} cannot be written: {error}") from error


def read_catalogue(path: Path) -> Catalogue:
    """Reads the file.

    Raises:
        CatalogueError: the file cannot be read, or is not what :func:`write_catalogue` writes.
    """
    try:
        return loads(path.read_bytes())
    except OSError as error:
        raise CatalogueError(f"catalogue {path} cannot be read: {error.strerror}") from error
    except CatalogueError as error:
        raise CatalogueError(f"catalogue {path}: {error}") from None


def dumps(catalogue: Catalogue) -> bytes:
    """Returns the file's contents."""
    document = {
        "kainite_catalogue": VERSION,
        "default_schema": catalogue.default_schema,
        "tables": {name: _table_json(catalogue.tables[name]) for name in sorted(catalogue.tables)},
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def loads(data: bytes) -> Catalogue:
    """Returns the catalogue in a file's contents; raises a CatalogueError that names the faulty place."""
    try:
        document = orjson.loads(data)
    except ValueError as error:
        raise CatalogueError(f"invalid JSON: {error}") from None
    if not isinstance(document, dict) or document.get("kainite_catalogue") != VERSION:
        raise CatalogueError(f"not a catalogue of version {VERSION}: write it anew with kainite precedence --write")
    tables = _field(document, "tables", dict, "the file")
    found = {name: _table(name, _typed(table, dict, f"table {name!r}")) for name, table in tables.items()}
    _check_references(found)
    return Catalogue(found, _optional(document, "default_schema", str, None, "the file"))


def _table_json(table: Table) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "schema": table.schema,
        "columns": {name: _column_json(column) for name, column in table.columns.items()},
        "primary_key": table.primary_key,
        "unique_keys": [
            {"name": key.name, "columns": key.columns, **({} if key.nulls_distinct else {"nulls_distinct": False})}
            for key in table.unique_keys
        ],
        "foreign_keys": [_foreign_key_json(key) for key in table.foreign_keys],
    }
    optional = {"part_of": table.part_of, "judged": table.judged}
    return shown | {field: value for field, value in optional.items() if value is not None}


def _column_json(column: Column) -> dict[str, Json]:
    shown: dict[str, Json] = {"type": column.type, "family": column.family.value}
    if not column.nullable:
        shown["nullable"] = False
    if column.generated:
        shown["generated"] = True
    return shown


def _foreign_key_json(key: ForeignKey) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "name": key.name,
        "columns": key.columns,
        "parent": key.parent,
        "parent_columns": key.parent_columns,
    }
    if key.deferrable:
        shown["deferrable"] = True
    actions = {"on_delete": key.on_delete, "on_update": key.on_update}
    return shown | {event: action.value for event, action in actions.items() if action is not Action.NO_ACTION}


def _table(name: str, json: Mapping[str, Json]) -> Table:
    where = f"table {name!r}"
    columns = {
        column: _column(column, _typed(described, dict, f"column {column!r} of {where}"), where)
        for column, described in _field(json, "columns", dict, where).items()
    }
    table = Table(
        name=name,
        schema=_optional(json, "schema", str, None, where),
        columns=columns,
        primary_key=_names(json, "primary_key", where),
        unique_keys=tuple(_unique_key(key, where) for key in _field(json, "unique_keys", list, where)),
        foreign_keys=tuple(_foreign_key(key, where) for key in _field(json, "foreign_keys", list, where)),
        part_of=_optional(json, "part_of", str, None, where),
        judged=_names(json, "judged", where) if "judged" in json else None,
    )
    keys = [
        table.primary_key,
        *(key.columns for key in table.unique_keys),
        *(key.columns for key in table.foreign_keys),
        table.judged or (),
    ]
    for column in sorted({column for key in keys for column in key} - columns.keys()):
        raise CatalogueError(f"{where}: a key names column {column!r}, which it does not have")
    return table


def _column(name: str, json: Mapping[str, Json], table: str) -> Column:
    where = f"column {name!r} of {table}"
    family = _field(json, "family", str, where)
    if family not in list(TypeFamily):
        raise CatalogueError(f"{where}: 'family' must be one of {', '.join(TypeFamily)}")
    return Column(
        name=name,
        type=_field(json, "type", str, where),
        family=TypeFamily(family),
        nullable=_optional(json, "nullable", bool, True, where),
        generated=_optional(json, "generated", bool, False, where),
    )


def _unique_key(json: Json, table: str) -> UniqueKey:
    where = f"a unique key of {table}"
    key = _typed(json, dict, where)
    distinct = _optional(key, "nulls_distinct", bool, True, where)
    return UniqueKey(_field(key, "name", str, where), _names(key, "columns", where), distinct)


def _foreign_key(json: Json, table: str) -> ForeignKey:
    where = f"a foreign key of {table}"
    key = _typed(json, dict, where)
    found = ForeignKey(
        name=_field(key, "name", str, where),
        columns=_names(key, "columns", where),
        parent=_field(key, "parent", str, where),
        parent_columns=_names(key, "parent_columns", where),
        deferrable=_optional(key, "deferrable", bool, False, where),
        on_delete=_action(key, "on_delete", where),
        on_update=_action(key, "on_update", where),
    )
    if not 0 < len(found.columns) == len(found.parent_columns):
        raise CatalogueError(f"{where}: 'columns' and 'parent_columns' must be as many, and not none")
    return found


def _action(json: Mapping[str, Json], field: str, where: str) -> Action:
    action = _optional(json, field, str, Action.NO_ACTION, where)
    if action not in list(Action):
        raise CatalogueError(f"{field!r} of {where} must be one of {', '.join(Action)}")
    return Action(action)


def _check_references(tables: Mapping[str, Table]) -> None:
    for table in tables.values():
        for key in table.foreign_keys:
            parent = tables.get(key.parent)
            for column in sorted(set(key.parent_columns) - parent.columns.keys()) if parent else ():
                raise CatalogueError(
                    f"table {table.name!r}: a foreign key names column {column!r}, which {key.parent!r} does not have"
                )


def _names(json: Mapping[str, Json], field: str, where: str) -> tuple[str, ...]:
    names: Sequence[Json] = _field(json, field, list, where)
    return tuple(_typed(name, str, f"{field!r} of {where}") for name in names)


def _field(json: Mapping[str, Json], field: str, kind: type[T], where: str) -> T:
    if field not in json:
        raise CatalogueError(f"{where}: {field!r} is missing")
    return _typed(json[field], kind, f"{field!r} of {where}")


def _optional(json: Mapping[str, Json], field: str, kind: type[T], default: T | None, where: str) -> T:
    value = json.get(field, default)
    return cast("T", value) if value is None else _typed(value, kind, f"{field!r} of {where}")


def _typed(value: Json, kind: type[T], where: str) -> T:
    if not isinstance(value, kind):
        names = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}
        raise CatalogueError(f"{where} must be {names[kind]}")
    return value
