"""Maps a source's tables to their names and primary keys in the target, from two files.

A change record names a table and its columns. Some sources do not say which columns are the key
(AWS DMS never does), and a table may have another name in the target. The first file is the
target's catalogue, as ``kainite precedence --write`` writes it. The second is optional, and wins::

    {"inventory.customers": {"table": "crm.customer", "key": ["id"]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kainite.base.errors import SettingsError
from kainite.uow import exact_json
from kainite.uow.catalogue.file import read_catalogue
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Json


@dataclass(frozen=True, slots=True)
class TableRule:
    """One table of the source.

    Attributes:
        table: its name in the target.
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
        table = self.catalogue.find(rule.table)
        return rule if table is None else TableRule(rule.table, table.primary_key)


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
        raise SettingsError(f"{where} must be an object with 'table', 'key' or both")
    table, key = json.get("table", name), json.get("key")
    if not isinstance(table, str) or not table:
        raise SettingsError(f"{where}: 'table' must be the table's name in the target")
    if key is not None and not (isinstance(key, list) and all(isinstance(column, str) for column in key)):
        raise SettingsError(f"{where}: 'key' must be an array of column names")
    return TableRule(table, None if key is None else tuple(key))
