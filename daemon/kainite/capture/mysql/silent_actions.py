"""Lists foreign keys by which the source changes rows of which its binlog says nothing.

InnoDB itself carries out ``ON DELETE CASCADE``, ``SET NULL`` and ``ON UPDATE CASCADE``: the binlog has the change of
the parent alone. A target with the same foreign key does the same; without it, it keeps rows that the source has not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue

_ACTIONS: Final = """
    SELECT constraint_name, table_name, referenced_table_name FROM information_schema.referential_constraints
    WHERE constraint_schema = %s AND unique_constraint_schema = %s
      AND NOT (delete_rule IN ('RESTRICT', 'NO ACTION') AND update_rule IN ('RESTRICT', 'NO ACTION')) ORDER BY 2, 1"""


@dataclass(frozen=True, slots=True)
class SilentAction:
    """A foreign key that changes rows of its child by itself.

    Attributes:
        constraint: its name.
        child, parent: its tables.
    """

    constraint: str
    child: str
    parent: str

    def __str__(self) -> str:
        return f"{self.child} ({self.constraint})"


def silent_actions(catalogue: MysqlSourceCatalogue, database: str) -> Iterator[SilentAction]:
    """Yields such foreign keys between tables of a database.

    Raises:
        SourceError: the server refused, or is away.
    """
    for constraint, child, parent in catalogue.rows(_ACTIONS, [database, database]):
        yield SilentAction(str(constraint), str(child), str(parent))
