"""The triggers and rules that fire in PostgreSQL, and the tables of which a change fires them."""

from __future__ import annotations

import psycopg

from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.hooks import HookPolicy
from kainite_spark.targets.postgresql.firing_hooks import KnownHooks, firing, found_hooks, reached

DDL = """
    CREATE TABLE a (id integer PRIMARY KEY);
    CREATE TABLE b (id integer PRIMARY KEY, a integer REFERENCES a ON DELETE CASCADE);
    CREATE TABLE c (id integer PRIMARY KEY, b integer REFERENCES b);
    CREATE SCHEMA aside;
    CREATE TABLE aside.e (id integer PRIMARY KEY, b integer REFERENCES b ON DELETE SET NULL);
    CREATE TABLE aside.far (id integer PRIMARY KEY, b integer REFERENCES b);
    CREATE TABLE whole (id integer PRIMARY KEY) PARTITION BY RANGE (id);
    CREATE TABLE part PARTITION OF whole DEFAULT;
    CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
"""


def trigger(name: str, on: str) -> str:
    return f"CREATE TRIGGER {name} AFTER UPDATE ON {on} FOR EACH ROW EXECUTE FUNCTION f()"


def test_hooks_and_what_leads_to_them(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        connection.execute(DDL)
        connection.execute(f"{trigger('in_e', 'aside.e')}; {trigger('far', 'aside.far')}; {trigger('w', 'whole')}")
        connection.execute("CREATE RULE r AS ON DELETE TO c DO INSTEAD NOTHING")
        connection.commit()
        found = found_hooks(firing(connection, reached(connection, reflect(postgres))))
    assert [(hook.table, hook.name) for hook in found.firing] == [("aside.e", "in_e"), ("c", "r"), ("whole", "w")]
    assert "DO INSTEAD NOTHING" in found.firing[1].definition
    assert found.hooked == {"a", "b", "c", "whole", "part"}
    assert not found.deferrable


def test_what_was_read_is_compared_with_what_fires_now(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(DDL)
        known = KnownHooks(reflect(postgres), HookPolicy())
        assert known.read(connection).firing == ()
        assert not known.changed(known.ask(connection))
        connection.execute(trigger("far", "aside.far"))
        assert not known.changed(known.ask(connection))
        connection.execute(trigger("in_e", "aside.e"))
        assert known.changed(known.ask(connection))
        connection.execute("ALTER TABLE aside.e DISABLE TRIGGER in_e")
        assert not known.changed(known.ask(connection))
