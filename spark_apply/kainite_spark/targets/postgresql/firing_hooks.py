"""The triggers and rules that fire in PostgreSQL when units are applied: asked of the target itself.

A session reads them once, keeps them, and asks at the end of each transaction whether they are still the same, as it
does with columns' types. A statement holds a lock on its table that ``CREATE TRIGGER`` and ``ALTER TABLE`` wait for. So
a hook that a statement of the transaction has fired is there at its end; if it is not known, nothing is committed, and
the session begins again with what it reads then.

Whether a hook fires depends on how it is enabled, and on ``session_replication_role``, which a role or a database may
set. What a change of a table may fire is what stands on the table, on its partitions and heirs, on what these are part
of, and on all that foreign keys with actions reach from there, also outside of the catalogue.

Tables that the cut-over of another log's replica has handed over may be in the catalogue too, since that is of the
whole database. Their hooks fire for those who write there now, and are not switched off. They keep no apply job from
its work, but a unit that would fire one which may not is refused with the whole job (:meth:`KnownHooks.check`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from psycopg.rows import namedtuple_row

from kainite.base.errors import TargetError
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.hooks import FoundHooks, Hook, HookPolicy, refusal, refusal_of_change
from kainite_spark.targets.postgresql.loaded_tables import handed_over
from kainite_spark.targets.postgresql.rendering import table_name

_REACH: Final = """
    WITH RECURSIVE pairs (one, other) AS (
        SELECT confrelid, conrelid FROM pg_constraint
        WHERE contype = 'f' AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd'))
        UNION SELECT inhparent, inhrelid FROM pg_inherits
        UNION SELECT inhrelid, inhparent FROM pg_inherits
    ), reach (name, oid) AS (
        SELECT name, to_regclass(name)::oid FROM unnest(%s::text[]) AS known (name)
        UNION SELECT reach.name, pairs.other FROM reach JOIN pairs ON pairs.one = reach.oid
    )
    SELECT name, oid::bigint AS oid, oid = to_regclass(name)::oid AS own FROM reach WHERE oid IS NOT NULL"""

_FIRES: Final = "IN ('A', CASE current_setting('session_replication_role') WHEN 'replica' THEN 'R' ELSE 'O' END)"

# A partition's copy of a trigger is left out while the trigger of the whole fires; before PostgreSQL 13 it is internal.
_FIRING: Final = f"""
    SELECT c.oid::bigint AS oid, format('%%I.%%I', n.nspname, c.relname) AS relation,
           pg_has_role(c.relowner, 'USAGE') AS owned, each.*
    FROM (
        SELECT t.tgrelid AS at, 'TRIGGER' AS kind, t.tgname::text AS name, t.tgenabled::text AS state,
               t.tgdeferrable AS deferrable, pg_get_triggerdef(t.oid) AS definition
        FROM pg_trigger t
        WHERE t.tgrelid = ANY(%(oids)s::oid[]) AND NOT t.tgisinternal AND t.tgenabled {_FIRES}
          AND NOT EXISTS (SELECT FROM pg_trigger whole
                          WHERE whole.oid = (to_jsonb(t) ->> 'tgparentid')::oid AND whole.tgenabled {_FIRES})
        UNION ALL
        SELECT r.ev_class, 'RULE', r.rulename::text, r.ev_enabled::text, false, pg_get_ruledef(r.oid)
        FROM pg_rewrite r
        WHERE r.ev_class = ANY(%(oids)s::oid[]) AND r.ev_enabled {_FIRES}
    ) AS each
    JOIN pg_class c ON c.oid = each.at
    JOIN pg_namespace n ON n.oid = c.relnamespace
    ORDER BY 2, 4, 5"""

_PRINT: Final = f"""
    SELECT (SELECT coalesce(string_agg(tgrelid || ' ' || tgname, ',' ORDER BY tgrelid, tgname), '') FROM pg_trigger
            WHERE tgrelid = ANY(%(oids)s::oid[]) AND NOT tgisinternal AND tgenabled {_FIRES}) || '|' ||
           (SELECT coalesce(string_agg(ev_class || ' ' || rulename, ',' ORDER BY ev_class, rulename), '')
            FROM pg_rewrite WHERE ev_class = ANY(%(oids)s::oid[]) AND ev_enabled {_FIRES})"""


_DEFERRED: Final = """
    SELECT coalesce(string_agg(DISTINCT format('%I.%I', n.nspname, c.conname), ', '), '')
    FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace WHERE c.condeferred"""


@dataclass(frozen=True, slots=True)
class FiringHook:
    """A hook that fires, as ``ALTER TABLE`` names it.

    Attributes:
        hook: what people are told.
        relation: the table, with its schema, quoted.
        kind: TRIGGER or RULE.
        state: how it is enabled: by origin (O), always (A) or as replica (R).
        deferrable: whether it may wait for the commit.
        owned: whether the session's role has the rights of the table's owner.
    """

    hook: Hook
    relation: str
    kind: str
    state: str
    deferrable: bool
    owned: bool


@dataclass(frozen=True, slots=True)
class ReachedTables:
    """The relations that the catalogue's tables are, and those where a change of them may fire something.

    Attributes:
        names: by a relation's id, the catalogue's tables of which a change reaches it.
        own: by a relation's id, the catalogue's table that it is.
    """

    names: Mapping[int, frozenset[str]]
    own: Mapping[int, str]

    @property
    def oids(self) -> list[int]:
        return sorted(self.names)


def reached(connection: psycopg.Connection, catalogue: Catalogue) -> ReachedTables:
    """Asks which relations a change of the catalogue's tables may reach."""
    called = {table_name(table): name for name, table in catalogue.tables.items()}
    names: defaultdict[int, set[str]] = defaultdict(set)
    own: dict[int, str] = {}
    for row in _rows(connection, _REACH, (list(called),)):
        names[row.oid].add(called[row.name])
        if row.own:
            own[row.oid] = called[row.name]
    return ReachedTables({oid: frozenset(found) for oid, found in names.items()}, own)


def firing(connection: psycopg.Connection, where: ReachedTables) -> Mapping[FiringHook, frozenset[str]]:
    """Asks which hooks fire; returns them with the tables of the catalogue of which a change fires them."""
    given = handed_over(connection)
    return {
        FiringHook(
            Hook(where.own.get(row.oid, row.relation), row.name, row.definition, row.oid in given),
            row.relation,
            row.kind,
            row.state,
            row.deferrable,
            row.owned,
        ): where.names[row.oid]
        for row in _rows(connection, _FIRING, {"oids": where.oids})
    }


def found_hooks(hooks: Mapping[FiringHook, frozenset[str]], off: Iterable[Hook] = ()) -> FoundHooks:
    """Returns hooks as people, and the planner, are told of them."""
    return FoundHooks(
        firing=tuple(sorted(each.hook for each in hooks)),
        hooked=frozenset[str]().union(*hooks.values()),
        deferrable=any(each.deferrable for each in hooks),
        off=tuple(sorted(off)),
    )


@dataclass(slots=True)
class KnownHooks:
    """What a session knows of the hooks that fire.

    Attributes:
        catalogue: the target's tables.
        policy: which hooks may fire.
    """

    catalogue: Catalogue
    policy: HookPolicy
    _found: FoundHooks | None = None
    _guarded: Mapping[str, tuple[Hook, ...]] = field(default_factory=dict)
    _oids: list[int] = field(default_factory=list)
    _print: str = ""
    _deferred: str = ""

    @property
    def are_known(self) -> bool:
        """Returns whether :meth:`read` asks nothing."""
        return self._found is not None

    def read(self, connection: psycopg.Connection) -> FoundHooks:
        """Returns the hooks that fire, which the target is asked for once.

        Raises:
            TargetError: one fires that may not. The start of the apply job was before it, and the next one says more.
        """
        if self._found is None:
            where = reached(connection, self.catalogue)
            self._oids, self._print = where.oids, _told(self._asked(connection, where.oids))
            fire = firing(connection, where)
            found = found_hooks(fire)
            if unwanted := self.policy.unwanted(found.firing):
                raise TargetError(refusal(unwanted))
            if found.deferrable:
                self._deferred = _told(connection.execute(_DEFERRED.encode()))
            self._guarded = _guarded(fire, self.policy)
            self._found = found
        return self._found

    def check(self, table: str) -> None:
        """Checks that a change of a table of the catalogue fires nothing of others that may not.

        Raises:
            TargetError: it does.
        """
        if unwanted := self._guarded.get(table):
            raise TargetError(refusal_of_change(table, unwanted))

    def settle(self, connection: psycopg.Connection, *, cyclic: bool) -> None:
        """Lets triggers that wait for the commit fire, as the commit of a unit alone would.

        Args:
            connection: in a transaction, perhaps a pipeline.
            cyclic: whether all constraints that can be deferred are.
        """
        if self._found is None or not self._found.deferrable:
            return
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        again = "ALL" if cyclic else self._deferred
        if again:
            connection.execute(f"SET CONSTRAINTS {again} DEFERRED".encode())

    def ask(self, connection: psycopg.Connection) -> psycopg.Cursor:
        """Asks which hooks fire now; :meth:`changed` reads the answer."""
        return self._asked(connection, self._oids)

    def changed(self, answer: psycopg.Cursor) -> bool:
        """Returns whether other hooks fire than those that were read."""
        return _told(answer) != self._print

    def forget(self) -> None:
        """Forgets the hooks, so that they are read anew."""
        self._found = None

    @staticmethod
    def _asked(connection: psycopg.Connection, oids: list[int]) -> psycopg.Cursor:
        return connection.execute(_PRINT, {"oids": oids})


def _guarded(fire: Mapping[FiringHook, frozenset[str]], policy: HookPolicy) -> Mapping[str, tuple[Hook, ...]]:
    """Returns the hooks of others that may not fire, by the tables of the catalogue of which a change fires them."""
    unwanted = set(policy.unwanted_when_changed(each.hook for each in fire))
    found: defaultdict[str, list[Hook]] = defaultdict(list)
    for each, names in fire.items():
        for name in names if each.hook in unwanted else ():
            found[name].append(each.hook)
    return {name: tuple(sorted(hooks)) for name, hooks in found.items()}


def _told(answer: psycopg.Cursor) -> str:
    row = answer.fetchone()
    assert row is not None, "a SELECT without FROM has a row"
    return str(row[0])


def _rows(connection: psycopg.Connection, query: str, values: Any) -> Iterable[Any]:
    cursor = connection.cursor(row_factory=namedtuple_row)
    return cursor.execute(query.encode(), values).fetchall()
