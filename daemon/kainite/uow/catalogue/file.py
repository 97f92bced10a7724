"""The catalogue as a JSON file, so that a shard host needs neither the target nor its driver.

``kainite precedence --write FILE`` writes the file. People can read and compare it, and write one by hand: it is
indented, tables are in order of name, defaults are left out. ``kainite_catalogue`` is the file's version. The structs
of this module are the file's format; an error names the path of what is wrong (``tables.orders.columns.id``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec

from kainite.base.errors import CatalogueError
from kainite.uow.catalogue.tables import (
    Catalogue,
    Column,
    ForeignKey,
    ReferentialAction,
    Table,
    TypeFamily,
    UniqueKey,
)

VERSION: Final = 1

T = TypeVar("T")

_PLACE = re.compile(r"(?P<problem>.*) - at `(?:key in )?\$(?P<path>.*)`", re.DOTALL)


_CHOICES: Final = {"family": TypeFamily, "on_delete": ReferentialAction, "on_update": ReferentialAction}
"""The words that a field may have if it takes one of a few words."""


class FileVersion(msgspec.Struct):
    """The text by which a catalogue differs from other JSON files."""

    kainite_catalogue: Literal[1]


class FileColumn(msgspec.Struct, omit_defaults=True):
    """A :class:`~kainite.uow.catalogue.tables.Column` as the file has it, under its name."""

    type: str
    family: TypeFamily
    nullable: bool = True
    generated: bool = False
    identity: bool = False


class FileUniqueKey(msgspec.Struct, omit_defaults=True):
    """A :class:`~kainite.uow.catalogue.tables.UniqueKey` as the file has it."""

    name: str
    columns: tuple[str, ...]
    nulls_distinct: bool = True


class FileForeignKey(msgspec.Struct, omit_defaults=True):
    """A :class:`~kainite.uow.catalogue.tables.ForeignKey` as the file has it."""

    name: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    deferrable: bool = False
    on_delete: ReferentialAction = ReferentialAction.NO_ACTION
    on_update: ReferentialAction = ReferentialAction.NO_ACTION


class FileTable(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A :class:`~kainite.uow.catalogue.tables.Table` as the file has it, under its name."""

    schema: str | None = None
    columns: dict[str, msgspec.Raw]
    primary_key: tuple[str, ...]
    unique_keys: tuple[FileUniqueKey, ...]
    foreign_keys: tuple[FileForeignKey, ...]
    part_of: str | None = None
    judged: tuple[str, ...] | None = None
    defaults: tuple[str, ...] | None = None


class FileCatalogue(msgspec.Struct, kw_only=True):
    """The whole file. The value under each name is decoded separately, so that an error can name it."""

    kainite_catalogue: int = VERSION
    default_schema: str | None = None
    tables: dict[str, msgspec.Raw]


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
    tables = {name: _encoded(_file_table(catalogue.tables[name])) for name in sorted(catalogue.tables)}
    document = FileCatalogue(default_schema=catalogue.default_schema, tables=tables)
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def loads(data: bytes) -> Catalogue:
    """Returns the catalogue in a file's contents; raises a CatalogueError that names the faulty place."""
    try:
        msgspec.json.decode(data, type=FileVersion)
    except msgspec.ValidationError:
        raise CatalogueError(
            f"not a catalogue of version {VERSION}: write it anew with kainite precedence --write"
        ) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise CatalogueError(f"invalid JSON: {error}") from None
    document = _decoded(data, FileCatalogue, "")
    tables = {name: _table(name, raw) for name, raw in document.tables.items()}
    for problem in _wrong_references(tables):
        raise CatalogueError(problem)
    return Catalogue(tables, document.default_schema)


def _file_table(table: Table) -> FileTable:
    return FileTable(
        schema=table.schema,
        columns={
            name: _encoded(msgspec.convert(column, FileColumn, from_attributes=True))
            for name, column in table.columns.items()
        },
        primary_key=table.primary_key,
        unique_keys=msgspec.convert(table.unique_keys, tuple[FileUniqueKey, ...], from_attributes=True),
        foreign_keys=msgspec.convert(table.foreign_keys, tuple[FileForeignKey, ...], from_attributes=True),
        part_of=table.part_of,
        judged=table.judged,
        defaults=table.defaults,
    )


def _table(name: str, raw: msgspec.Raw) -> Table:
    where = f"tables.{name}"
    found = _decoded(raw, FileTable, where)
    columns = {
        column: Column(column, **msgspec.structs.asdict(_decoded(described, FileColumn, f"{where}.columns.{column}")))
        for column, described in found.columns.items()
    }
    table = Table(
        name=name,
        schema=found.schema,
        columns=columns,
        primary_key=found.primary_key,
        unique_keys=tuple(UniqueKey(**msgspec.structs.asdict(key)) for key in found.unique_keys),
        foreign_keys=tuple(ForeignKey(**msgspec.structs.asdict(key)) for key in found.foreign_keys),
        part_of=found.part_of,
        judged=found.judged,
        defaults=found.defaults,
    )
    for problem in _wrong_keys(table, where):
        raise CatalogueError(problem)
    return table


def _wrong_keys(table: Table, where: str) -> Iterator[str]:
    """Yields the faults of a table's keys."""
    for number, key in enumerate(table.foreign_keys):
        if not 0 < len(key.columns) == len(key.parent_columns):
            yield f"{where}.foreign_keys[{number}]: columns and parent_columns must be as many, and not none"
    named = {
        "primary_key": table.primary_key,
        "judged": table.judged or (),
        "defaults": table.defaults or (),
        **{f"unique_keys[{number}].columns": key.columns for number, key in enumerate(table.unique_keys)},
        **{f"foreign_keys[{number}].columns": key.columns for number, key in enumerate(table.foreign_keys)},
    }
    for field, columns in named.items():
        for column in columns:
            if column not in table.columns:
                yield f"{where}.{field}: there is no column {column!r}"


def _wrong_references(tables: Mapping[str, Table]) -> Iterator[str]:
    """Yields the foreign keys that name a column which their parent does not have."""
    for table in tables.values():
        for number, key in enumerate(table.foreign_keys):
            parent = tables.get(key.parent)
            for column in sorted(set(key.parent_columns) - parent.columns.keys()) if parent else ():
                where = f"tables.{table.name}.foreign_keys[{number}].parent_columns"
                yield f"{where}: {key.parent!r} has no column {column!r}"


def _encoded(value: FileColumn | FileTable) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _decoded(data: bytes | msgspec.Raw, kind: type[T], where: str) -> T:
    """Returns the value in ``data``; an error names the field by its path from the file's beginning."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        place = _PLACE.fullmatch(str(error))
        path = f"{where}{place['path'] if place else ''}".removeprefix(".") or "the file"
        problem = place["problem"] if place else str(error)
        choices = _CHOICES.get(path.rpartition(".")[2], ())
        raise CatalogueError(f"{path}: {problem}" + (f"; one of {', '.join(choices)}" if choices else "")) from None
