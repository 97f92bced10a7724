"""Maps a source's tables to their names and primary keys in the target, from two files.

A change record names a table and its columns. Some sources do not say which columns are the key
(AWS DMS never does), and a table may have another name in the target. The first file is the
target's catalogue, as ``kainite precedence --write`` writes it. The second is optional, and wins::

    {"inventory.customers": {"table": "crm.customer", "key": ["id"]}}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from kainite.base.errors import CatalogueError, SettingsError
from kainite.uow import exact_json
from kainite.uow.catalogue.file import read_catalogue
from kainite.uow.catalogue.tables import Catalogue, Table
from kainite.uow.delta import Json

Row: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class TableRule:
    """One table of the source.

    Attributes:
        table: the table's name in the target.
        key: the columns of its primary key; empty for a table without one; None: neither file says.
    """

    table: str
    key: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Tables:
    """The rules for all tables of a source, by their names in the source."""

    rules: Mapping[str, TableRule] = field(default_factory=dict)
    catalogue: Catalogue | None = None

    def find(self, name: str) -> TableRule:
        """Returns the rule for a table; a table without a rule keeps its name."""
        rule = self.rules.get(name, TableRule(name))
        if rule.key is not None or self.catalogue is None:
            return rule
        table = self.table(rule)
        return rule if table is None else replace(rule, key=table.primary_key)

    def table(self, rule: TableRule) -> Table | None:
        """Returns the target's table, where the catalogue has it."""
        return self.catalogue.find(rule.table) if self.catalogue else None


class CurrentTables:
    """The rules of the two files, read again when they lack something and one of them has been replaced.

    States: the rules as they were last read, and the files' state then. A file that cannot be read any more leaves
    the rules as they are. Nothing is durable.

    Args:
        tables, catalogue: the files that are given, as for :func:`read_tables`.
    """

    def __init__(self, tables: Path | None, catalogue: Path | None) -> None:
        self._paths = (tables, catalogue)
        self._seen = self._state()
        self._tables = read_tables(tables, catalogue)

    def find(self, name: str, columns: Iterable[str]) -> tuple[TableRule, Table | None]:
        """Returns a table's rule, and the target's table where the catalogue has it.

        Args:
            name: the table's name in the source.
            columns: those of a change; when one of them is unknown, the files are looked at again.
        """
        found = self._find(name)
        if not _knows(found, columns) and self._replaced():
            found = self._find(name)
        return found

    def _find(self, name: str) -> tuple[TableRule, Table | None]:
        rule = self._tables.find(name)
        return rule, self._tables.table(rule)

    def _replaced(self) -> bool:
        """Reads the files again, if one of them is another one; tells whether it did."""
        state = self._state()
        if state == self._seen:
            return False
        self._seen = state
        with suppress(SettingsError, CatalogueError):
            self._tables = read_tables(*self._paths)
        return True

    def _state(self) -> list[tuple[int, int] | None]:
        return [_state_of(path) for path in self._paths]


def _state_of(path: Path | None) -> tuple[int, int] | None:
    try:
        stat = path.stat() if path else None
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_ino) if stat else None


def _knows(found: tuple[TableRule, Table | None], columns: Iterable[str]) -> bool:
    rule, table = found
    return rule.key is not None and (table is None or all(column in table.columns for column in columns))


def read_tables(tables: Path | None, catalogue: Path | None) -> Tables:
    """Reads the files that are given.

    Raises:
        SettingsError: ``tables`` cannot be read, or has another form than above.
        CatalogueError: ``catalogue`` cannot be read.
    """
    rules = _rules(tables) if tables else {}
    return Tables(rules, read_catalogue(catalogue) if catalogue else None)


def _rules(path: Path) -> dict[str, TableRule]:
    try:
        document = exact_json.loads(path.read_bytes())
    except OSError as error:
        raise SettingsError(f"table file {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"table file {path}: invalid JSON: {error}") from None
    if not isinstance(document, dict):
        raise SettingsError(f'table file {path}: an object is needed, such as {{"shop.orders": {{"key": ["id"]}}}}')
    return {name: _rule(name, json, path) for name, json in document.items()}


def _rule(name: str, json: Json, path: Path) -> TableRule:
    where = f"table file {path}: {name!r}"
    if not isinstance(json, dict) or not json.keys() <= {"table", "key"}:
        raise SettingsError(f"{where} must be an object with 'table' or 'key', or both")
    table, key = json.get("table", name), json.get("key")
    if not isinstance(table, str) or not table:
        raise SettingsError(f"{where}: 'table' must be the table's name in the target")
    if key is not None and not (isinstance(key, list) and all(isinstance(one, str) for one in key)):
        raise SettingsError(f"{where}: 'key' must be an array of column names")
    return TableRule(table, None if key is None else tuple(key))
