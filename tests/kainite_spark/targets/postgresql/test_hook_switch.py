"""Triggers and rules that are switched off in PostgreSQL, and on again."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from kainite.base.errors import CatalogueError, TargetError
from kainite.settings import ApplySettings, TargetTriggers
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.hooks import HookPolicy
from kainite_spark.targets.postgresql.firing_hooks import reached
from kainite_spark.targets.postgresql.hook_switch import switch_off, switch_on
from kainite_spark.targets.postgresql.target import PostgresTarget
from kainite_spark.targets.schema import Schema
from support.stores import Database, Stores

OFF = ApplySettings(triggers=TargetTriggers.OFF)

DDL = """
    CREATE TABLE product (id integer PRIMARY KEY, price integer);
    CREATE TABLE "odd ""name" (id integer PRIMARY KEY, p integer REFERENCES product);
    CREATE TABLE whole (id integer PRIMARY KEY, v integer) PARTITION BY RANGE (id);
    CREATE TABLE part PARTITION OF whole DEFAULT;
    CREATE TABLE other (id integer);
    CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO other VALUES (NEW.id); RETURN NEW; END $$;
    CREATE TRIGGER "a ""b" BEFORE UPDATE OR INSERT ON product FOR EACH ROW EXECUTE FUNCTION more();
    CREATE TRIGGER always AFTER INSERT ON product FOR EACH ROW EXECUTE FUNCTION more();
    ALTER TABLE product ENABLE ALWAYS TRIGGER always;
    CREATE TRIGGER never AFTER INSERT ON product FOR EACH ROW EXECUTE FUNCTION more();
    ALTER TABLE product DISABLE TRIGGER never;
    CREATE TRIGGER replica AFTER INSERT ON product FOR EACH ROW EXECUTE FUNCTION more();
    ALTER TABLE product ENABLE REPLICA TRIGGER replica;
    CREATE TRIGGER t AFTER INSERT ON "odd ""name" FOR EACH ROW EXECUTE FUNCTION more();
    CREATE TRIGGER of_all AFTER INSERT ON whole FOR EACH ROW EXECUTE FUNCTION more();
    CREATE RULE r AS ON INSERT TO product DO ALSO INSERT INTO other VALUES (99);
"""

STATES = """
    SELECT tgrelid::regclass::text, tgname::text, tgenabled::text FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT ev_class::regclass::text, rulename::text, ev_enabled::text FROM pg_rewrite
              WHERE ev_class = 'product'::regclass ORDER BY 1, 2"""


def test_nothing_fires_and_foreign_keys_are_still_checked(stores: Stores) -> None:
    store = stores.open(DDL, apply=OFF)
    units = [
        store.unit(1, store.insert("product", id=1, price=1), store.insert('odd "name', id=1, p=1)),
        store.unit(2, store.insert("whole", id=1, v=1)),
        store.unit(3, store.insert('odd "name', id=2, p=7)),
    ]
    assert store.statuses(*units) == ["committed", "committed", "failed"]
    assert store.rows("other") == []


def test_switched_on_again_each_is_as_it_was(stores: Stores) -> None:
    stores.database.run(DDL)
    before = stores.database.rows(STATES)
    store = stores.open("", apply=OFF)
    target = store.target
    assert isinstance(target, PostgresTarget)
    found = target.hooks()
    assert (found.firing, found.hooked) == ((), frozenset())
    assert [hook.name for hook in found.off] == ["t", 'a "b', "always", "r", "of_all"]

    assert len(target.switch_on()) == 5
    assert stores.database.rows(STATES) == before
    assert target.hooks().off == ()
    assert target.switch_on() == []


def test_a_second_start_forgets_nothing(stores: Stores) -> None:
    stores.database.run(DDL)
    before = stores.database.rows(STATES)
    first = stores.open("", apply=OFF)
    stores.database.run("ALTER TABLE product ENABLE TRIGGER never")
    with pytest.raises(TargetError, match="never"):
        first.apply(first.unit(1, first.insert("product", id=1, price=1)))
    second = stores.open("", apply=OFF)
    assert second.statuses(second.unit(1, second.insert("product", id=1, price=1))) == ["committed"]
    assert isinstance(second.target, PostgresTarget)
    assert len(second.target.switch_on()) == 6
    assert stores.database.rows(STATES) == [(*row[:2], "O" if row[1] == "never" else row[2]) for row in before]


def test_what_was_dropped_or_enabled_meanwhile_is_left_alone(stores: Stores) -> None:
    store = stores.open(DDL, apply=OFF)
    stores.database.run(
        'DROP TRIGGER "a ""b" ON product; ALTER TABLE product ENABLE REPLICA TRIGGER always; DROP TABLE whole'
    )
    assert isinstance(store.target, PostgresTarget)
    assert sorted(hook.name for hook in store.target.switch_on()) == ["r", "t"]
    assert ("product", "always", "R") in stores.database.rows(STATES)


def test_a_crash_before_the_commit_leaves_every_trigger_as_it_was(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        connection.execute(DDL)
    before = Database(postgres).rows(STATES)
    catalogue = reflect(postgres)
    with psycopg.connect(postgres) as connection:
        assert switch_off(connection, reached(connection, catalogue), HookPolicy(TargetTriggers.OFF))
        connection.rollback()
        assert Database(postgres).rows(STATES) == before
        assert switch_on(connection) == []


def test_who_does_not_own_the_table_is_told_what_the_owner_can_do(postgres: str) -> None:
    role = f"guest_{conninfo_to_dict(postgres)['dbname']}"
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(DDL)
        admin.execute(f"CREATE ROLE {role} LOGIN; GRANT ALL ON SCHEMA public TO {role}")
        admin.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
    try:
        target = PostgresTarget(f"{postgres}&user={role}", Schema.of(reflect(postgres)), HookPolicy(TargetTriggers.OFF))
        with pytest.raises(
            CatalogueError, match=r"targetTriggers=off: the target.s role must be owner .* ALTER TABLE .* DISABLE"
        ):
            target.prepare("0", reflect(postgres))
        target.close()
    finally:
        with psycopg.connect(postgres, autocommit=True) as admin:
            admin.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


def test_a_session_as_replica_is_asked_what_fires_for_it(postgres: str) -> None:
    database = conninfo_to_dict(postgres)["dbname"]
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(DDL)
        admin.execute(f"ALTER DATABASE {database} SET session_replication_role = replica")
    target = PostgresTarget(postgres, Schema.of(reflect(postgres)))
    assert [hook.name for hook in target.hooks().firing] == ["always", "replica"]
    target.close()
