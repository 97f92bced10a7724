"""The triggers of a MariaDB or MySQL target that fire when units are applied: asked of the target itself.

A session reads them once, keeps them, and asks at the end of each transaction whether the tables that it wrote still
have the same ones. A statement holds a metadata lock on its table that ``CREATE TRIGGER`` waits for. So a trigger that
a statement of the transaction has fired is there at its end; if it is not known, nothing is committed, and the session
begins again with what it reads then. There is no way to switch a trigger off.

Where a cut-over has handed a table over to others, its triggers are theirs: another log's apply job in the same
database is refused by them only when it changes that table. What a foreign key's action changes fires no trigger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pymysql

from kainite.base.errors import TargetError
from kainite.uow.catalogue.tables import Catalogue, Table
from kainite_spark.targets.hooks import FoundHooks, Hook, HookPolicy, leading_to, refusal, refusal_of_change
from kainite_spark.targets.mariadb.literals import quoted_text
from kainite_spark.targets.mariadb.loaded_positions import handed_over
from kainite_spark.targets.mariadb.packet import send

if TYPE_CHECKING:  # whose module needs PostgreSQL's driver
    from kainite.replicate.tables import TableName

_TRIGGERS = """
    SELECT event_object_schema, event_object_table, trigger_name, action_timing, event_manipulation, action_statement
    FROM information_schema.triggers WHERE event_object_schema = {}"""
_OF_TABLE = """
    SELECT event_object_schema, event_object_table, trigger_name, event_manipulation
    FROM information_schema.triggers WHERE event_object_schema = {} AND event_object_table = {}"""

Fired = tuple[str, str]
"""A trigger's name, and the change that fires it."""


def found_triggers(connection: pymysql.connections.Connection, catalogue: Catalogue) -> FoundHooks:
    """Returns the triggers on the catalogue's tables, and the tables of which a change may fire one of them."""
    return found_hooks(_asked(connection, catalogue), catalogue, handed_over(connection))


def found_hooks(
    triggers: Iterable[tuple[Any, ...]], catalogue: Catalogue, given: Collection[TableName] = ()
) -> FoundHooks:
    """Returns triggers as people, and the planner, are told of them.

    Args:
        triggers: what the target tells of them.
        catalogue: the target's tables.
        given: the tables that cut-overs have handed over to others.
    """
    hooks = tuple(
        sorted(
            Hook(
                called,
                name,
                f"CREATE TRIGGER {name} {timing} {event} ON {table} FOR EACH ROW {statement}",
                (schema, table) in given,
            )
            for schema, table, name, timing, event, statement in triggers
            if (called := _called(schema, table, catalogue)) is not None
        )
    )
    return FoundHooks(hooks, leading_to({hook.table for hook in hooks}, catalogue))


@dataclass(slots=True)
class KnownTriggers:
    """What a session knows of the triggers that fire.

    Attributes:
        catalogue: the target's tables.
        policy: which triggers may fire.
    """

    catalogue: Catalogue
    policy: HookPolicy
    _found: FoundHooks | None = None
    _guarded: Sequence[Hook] = ()
    _known: defaultdict[str, set[Fired]] = field(default_factory=lambda: defaultdict(set))

    def read(self, connection: pymysql.connections.Connection) -> FoundHooks:
        """Returns the triggers, which the target is asked for once.

        Raises:
            TargetError: one fires that may not. The start of the apply job was before it, and the next one says more.
            FailedStatementError: the target does not answer.
        """
        if self._found is None:
            rows = _asked(connection, self.catalogue)
            self._known.clear()
            for schema, table, name, _, event, _ in rows:
                if (called := _called(schema, table, self.catalogue)) is not None:
                    self._known[called].add((name, event))
            found = found_hooks(rows, self.catalogue, handed_over(connection))
            if unwanted := self.policy.unwanted(found.firing):
                raise TargetError(refusal(unwanted))
            self._guarded = self.policy.unwanted_when_changed(found.firing)
            self._found = found
        return self._found

    def check(self, table: str) -> None:
        """Checks that a change of a table fires nothing of others that may not.

        Raises:
            TargetError: it does.
        """
        if unwanted := [hook for hook in self._guarded if hook.table == table]:
            raise TargetError(refusal_of_change(table, unwanted))

    def question(self, tables: Iterable[Table]) -> str:
        """Returns the query that asks for the triggers of tables; :meth:`changed` reads its answer."""
        return " UNION ALL ".join(
            _OF_TABLE.format(quoted_text(table.schema or ""), quoted_text(table.bare_name)) for table in tables
        )

    def changed(self, names: Collection[str], rows: Sequence[tuple[Any, ...]]) -> bool:
        """Returns whether these tables have other triggers than those that were read."""
        now: defaultdict[str, set[Fired]] = defaultdict(set)
        for schema, table, name, event in rows:
            if (called := _called(schema, table, self.catalogue)) is not None:
                now[called].add((name, event))
        return any(now.get(name, set()) != self._known.get(name, set()) for name in names)

    def forget(self) -> None:
        """Forgets the triggers, so that they are read anew."""
        self._found = None


def _asked(connection: pymysql.connections.Connection, catalogue: Catalogue) -> list[tuple[Any, ...]]:
    schemas = sorted({table.schema or "" for table in catalogue.tables.values()})
    answers = send(connection, [_TRIGGERS.format(quoted_text(schema)) for schema in schemas]) if schemas else []
    return [row for answer in answers for row in answer.rows]


def _called(schema: str, name: str, catalogue: Catalogue) -> str | None:
    """Returns a table's name as deltas call it; None for one that is not in the catalogue."""
    table = catalogue.tables.get(f"{schema}.{name}") or catalogue.tables.get(name)
    return table.name if table is not None and (table.schema, table.bare_name) == (schema, name) else None
