"""What the load of a single table has taken from a target's catalogue for a while, and gives back: foreign keys.

A load takes them off, notes them (:mod:`kainite.replicate.mariadb_foreign_keys`), and may go on for days. A daemon that
reads a catalogue without them orders units wrongly: a child may pass its parent. So these count as there. A target that
believes in them without reason writes in an order that is right with or without them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import pymysql

from kainite.targets.mariadb.rows import rows_if_there

_NOTED: Final = """
    SELECT DISTINCT child_name, constraint_name, parent_schema, parent_name, child_columns, parent_columns, on_delete,
           on_update
    FROM kainite_load_foreign_key WHERE child_schema = %s ORDER BY child_name, constraint_name"""


def foreign_keys_off(
    connection: pymysql.connections.Connection, schema: str | None, columns: Mapping[str, Collection[str]]
) -> Iterator[dict[str, Any]]:
    """Yields the foreign keys of a schema that loads of single tables have taken off, a row a column.

    Args:
        connection: a session whose database has Kainite's own tables.
        schema: the schema.
        columns: the columns of each of its tables; a foreign key of one that is gone is none.
    """
    for table, name, parent_schema, parent, own, named, deletes, updates in rows_if_there(connection, _NOTED, schema):
        pairs = list(zip(json.loads(own), json.loads(named), strict=True))
        if all(one in columns.get(table, ()) for one, _ in pairs):
            for one, other in pairs:
                yield {
                    "tab": table, "name": name, "col": one, "parent_schema": parent_schema, "parent": parent,
                    "parent_col": other, "on_delete": deletes, "on_update": updates,
                }  # fmt: skip
