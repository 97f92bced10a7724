"""The triggers of a SQLite database that fire when units are applied.

A transaction reads them behind its ``BEGIN IMMEDIATE``, so no other connection makes one before its commit. SQLite has
neither rules nor triggers that wait, and no way to switch one off.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.hooks import FoundHooks, Hook, leading_to

_TRIGGERS: Final = "SELECT tbl_name, name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY tbl_name, name"


def found_triggers(connection: sqlite3.Connection, catalogue: Catalogue) -> FoundHooks:
    """Returns the triggers on the catalogue's tables, and the tables of which a change may fire one of them.

    Triggers on other tables are left out: Kainite's own tables, and tables that were made after the catalogue was read.
    """
    spelled = {name.casefold(): name for name in catalogue.tables}
    found = [(spelled.get(on.casefold()), name, sql) for on, name, sql in connection.execute(_TRIGGERS)]
    hooks = tuple(Hook(table, name, sql) for table, name, sql in found if table is not None)
    return FoundHooks(hooks, leading_to({hook.table for hook in hooks}, catalogue))
