"""Switches triggers and rules of PostgreSQL off, and on again.

``session_replication_role = replica`` is no way: it switches the checks of foreign keys off, too. So each hook is
disabled by name, which only the owner of its table may do, and which holds for all sessions.

States, of a hook:

* *firing*, as its maker left it: no row in ``kainite_hooks_off``;
* *switched off*: a row tells how it was enabled, and ``ALTER TABLE … DISABLE`` was done in the row's transaction.

Invariant: what Kainite has disabled has a row. DDL is transactional in PostgreSQL, so a crash leaves all hooks of a
call in one state or the other. Nothing switches a hook on but :func:`switch_on`, for a person who asks for it: when an
apply job ends, another one may be at work already, and a job that is killed ends without doing anything. A hook that
somebody enabled meanwhile, or dropped, is left as it is. A hook that is enabled while a row is there stops the job
(:mod:`kainite_spark.targets.postgresql.firing_hooks`), and its next start with ``targetTriggers=off`` disables it
again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import psycopg

from kainite.base.errors import CatalogueError
from kainite_spark.targets.hooks import Hook, HookPolicy
from kainite_spark.targets.postgresql.firing_hooks import FiringHook, ReachedTables, firing

_TABLE: Final = "kainite_hooks_off"

_CREATE: Final = f"""
    CREATE TABLE IF NOT EXISTS {_TABLE} (
        relation text NOT NULL, kind text NOT NULL, name text NOT NULL, state text NOT NULL, called text NOT NULL,
        definition text NOT NULL, PRIMARY KEY (relation, kind, name)
    )"""

_NOTE: Final = f"""
    INSERT INTO {_TABLE} (relation, kind, name, state, called, definition) VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (relation, kind, name) DO UPDATE SET state = excluded.state, definition = excluded.definition"""

_FORGET: Final = f"DELETE FROM {_TABLE} WHERE relation = %s AND kind = %s AND name = %s"

_OID: Final = "SELECT to_regclass(%s)::oid::bigint"

_THERE: Final = f"SELECT to_regclass('{_TABLE}') IS NOT NULL"

_NOTED: Final = f"SELECT relation, kind, name, state, called, definition FROM {_TABLE} ORDER BY relation, kind, name"

_DISABLED: Final = """
    SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(%(relation)s) AND tgname = %(name)s
                   AND tgenabled = 'D' AND %(kind)s = 'TRIGGER')
        OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = to_regclass(%(relation)s) AND rulename = %(name)s
                   AND ev_enabled = 'D' AND %(kind)s = 'RULE')"""

_ENABLE: Final = {"O": "ENABLE", "A": "ENABLE ALWAYS", "R": "ENABLE REPLICA"}

_ROUNDS: Final = 3
"""Up to PostgreSQL 14 a partition's copy of a trigger is only seen to fire when that of the whole is disabled."""


def switch_off(connection: psycopg.Connection, where: ReachedTables, policy: HookPolicy) -> list[Hook]:
    """Disables all hooks that fire and may not; returns them. The caller commits.

    Raises:
        CatalogueError: the role may not do it.
    """
    done: list[Hook] = []
    for _ in range(_ROUNDS):
        found = firing(connection, where)
        unwanted = set(policy.unwanted(each.hook for each in found))
        if not unwanted:
            break
        if why := not_ours_to_disable(found, unwanted):
            raise CatalogueError(why)
        connection.execute(_CREATE.encode())
        for each in (each for each in found if each.hook in unwanted):
            _disable(connection, each)
            done.append(each.hook)
    return done


def not_ours_to_disable(found: Iterable[FiringHook], unwanted: Collection[Hook]) -> str | None:
    """Returns why :func:`switch_off` cannot disable all of ``unwanted``; None if it can."""
    others = [each for each in found if each.hook in unwanted and not each.owned]
    if not others:
        return None
    tables = ", ".join(dict.fromkeys(each.relation for each in others))
    statements = "; ".join(map(_disabling, others))
    return f"targetTriggers=off: the target's role must be owner of {tables}. The owner can do it: {statements}"


def switch_on(connection: psycopg.Connection, only: Collection[int] | None = None) -> list[Hook]:
    """Enables what :func:`switch_off` has disabled, as it was; returns it. The caller commits.

    Args:
        connection: a session with the target.
        only: the ids of the relations whose hooks are enabled; all without it.
    """
    done = []
    for relation, kind, name, state, called, definition in _noted(connection):
        if only is not None and _oid(connection, relation) not in only:
            continue
        names = {"relation": relation, "kind": kind, "name": name}
        if _is_true(connection.execute(_DISABLED, names)):
            connection.execute(f"ALTER TABLE {relation} {_ENABLE[state]} {kind} {_quoted(name)}".encode())
            done.append(Hook(called, name, definition))
        connection.execute(_FORGET.encode(), (relation, kind, name))
    if _is_true(connection.execute(_THERE.encode())) and not _noted(connection):
        connection.execute(f"DROP TABLE {_TABLE}".encode())
    return done


def switched_off(connection: psycopg.Connection) -> list[Hook]:
    """Returns the hooks that Kainite has disabled."""
    return [Hook(called, name, definition) for _, _, name, _, called, definition in _noted(connection)]


def _oid(connection: psycopg.Connection, relation: str) -> int | None:
    row = connection.execute(_OID, (relation,)).fetchone()
    return None if row is None else row[0]


def _noted(connection: psycopg.Connection) -> Sequence[Any]:
    if not _is_true(connection.execute(_THERE.encode())):
        return ()
    return connection.execute(_NOTED.encode()).fetchall()


def _disable(connection: psycopg.Connection, each: FiringHook) -> None:
    hook = each.hook
    noted = (each.relation, each.kind, hook.name, each.state, hook.table, hook.definition)
    connection.execute(_NOTE.encode(), noted)
    connection.execute(_disabling(each).encode())


def _disabling(each: FiringHook) -> str:
    return f"ALTER TABLE {each.relation} DISABLE {each.kind} {_quoted(each.hook.name)}"


def _is_true(answer: psycopg.Cursor) -> bool:
    row = answer.fetchone()
    return row is not None and row[0] is True


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
