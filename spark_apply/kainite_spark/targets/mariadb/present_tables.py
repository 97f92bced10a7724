"""What the target's tables are like now: the types by which a session spells values, and the storage engine.

The catalogue may be older than a table, and :mod:`~kainite_spark.targets.mariadb.literals` spells values by types. So a
session reads a table from the target itself when it meets it, keeps what it read, and asks at the end of each
transaction for the definitions of the tables that it wrote. Its statements hold metadata locks by then, which ``ALTER
TABLE`` waits for. If a definition has changed, nothing is committed, and the session begins again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pymysql

from kainite.base.errors import TargetError
from kainite.targets.mariadb.type_families import family_of
from kainite.uow.catalogue.tables import Table
from kainite_spark.targets.mariadb.literals import quoted_text
from kainite_spark.targets.mariadb.packet import StatementAnswer, send
from kainite_spark.targets.mariadb.rendering import table_name

_COLUMNS: Final = """
    SELECT column_name, data_type, column_type, collation_name, is_nullable = 'YES' FROM information_schema.columns
    WHERE table_schema = {} AND table_name = {}"""
_COUNTER: Final = re.compile(r" AUTO_INCREMENT=\d+")
_ENGINE: Final = re.compile(r"^\) ENGINE=(\w+)", re.MULTILINE)
_TRANSACTIONAL: Final = ("InnoDB", "RocksDB", "ROCKSDB")


@dataclass(slots=True)
class PresentTables:
    """Keeps what the tables are like that a session has written.

    Attributes:
        tables: the tables of the catalogue with the types that their columns have in the target.
        definitions: the statements that would make them, without counters.
    """

    tables: dict[str, Table] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)

    def table(self, connection: pymysql.connections.Connection, table: Table) -> Table:
        """Returns a table of the catalogue with the types of the target, which is asked once.

        Raises:
            TargetError: its storage engine has no transactions.
            FailedStatementError: there is no such table, or the target does not answer.
        """
        found = self.tables.get(table.name)
        if found is None:
            asked = _COLUMNS.format(quoted_text(table.schema or ""), quoted_text(table.bare_name))
            made, columns = send(connection, [self.question(table), asked])
            self.definitions[table.name] = _definition(made)
            engine = _ENGINE.search(self.definitions[table.name])
            if why := why_not_transactional(table.name, engine[1] if engine else None):
                raise TargetError(why)
            found = self.tables[table.name] = _typed(table, columns)
        return found

    @staticmethod
    def question(table: Table) -> str:
        """Returns the statement that asks for a table's definition; :meth:`changed` reads the answers."""
        return f"SHOW CREATE TABLE {table_name(table)}"

    def changed(self, names: Collection[str], answers: Sequence[StatementAnswer]) -> bool:
        """Returns whether a table has got another definition, as the target answered."""
        return any(
            self.definitions.get(name) != _definition(answer) for name, answer in zip(names, answers, strict=True)
        )

    def forget(self) -> None:
        """Forgets all tables, so that they are read anew."""
        self.tables.clear()
        self.definitions.clear()


def why_not_transactional(name: str, engine: str | None) -> str | None:
    """Returns why a table cannot be a target, for its storage engine; None if it can, or the engine is not known."""
    if engine is None or engine in _TRANSACTIONAL:
        return None
    return (
        f"table {name} has the storage engine {engine}, which has no transactions: a unit could not be applied"
        f" whole. ALTER TABLE {name} ENGINE = InnoDB"
    )


def _definition(answer: StatementAnswer) -> str:
    return _COUNTER.sub("", str(answer.rows[0][1]))


def _typed(table: Table, columns: StatementAnswer) -> Table:
    types = {
        name: (kind, family_of(data_type, kind, collation), bool(nullable))
        for name, data_type, kind, collation, nullable in columns.rows
    }
    # A column that is gone keeps the catalogue's type: the target refuses the statement that names it.
    return replace(
        table,
        columns={
            name: replace(column, type=types[name][0], family=types[name][1], nullable=types[name][2])
            if name in types
            else column
            for name, column in table.columns.items()
        },
    )
