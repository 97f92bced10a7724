"""A transaction's settings do not depend on what the session went through: triggers, roles, a pooler in between."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from kainite.settings import ApplySettings, TargetTriggers
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.opening import open_target
from support.stores import Database, Stores

CHANGING = """
    CREATE TABLE item (id bigint PRIMARY KEY, at timestamptz, waits text);
    CREATE SCHEMA elsewhere;
    CREATE TABLE elsewhere.kainite_applied (LIKE item);
    CREATE TABLE elsewhere.kainite_fence (LIKE item);
    CREATE FUNCTION changes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        NEW.waits := current_setting('lock_timeout');
        SET search_path = elsewhere; SET lock_timeout = 0; SET TimeZone = 'Asia/Tokyo';
        SET idle_in_transaction_session_timeout = 0; SET default_transaction_isolation = 'serializable';
        RETURN NEW; END $$;
    CREATE TRIGGER changes BEFORE INSERT ON item FOR EACH ROW EXECUTE FUNCTION changes();
"""
"""What the trigger sets stays in the session after the commit, as what another client sets does behind a pooler."""

FIRING = ApplySettings(triggers=TargetTriggers.FIRE)


def test_what_a_trigger_sets_in_the_session_does_not_reach_the_next_transaction(stores: Stores) -> None:
    store = stores.open(CHANGING, apply=FIRING)
    for tid in (1, 2):
        unit = store.unit(tid, store.insert("item", id=tid, at="2026-01-01 12:00:00"))
        assert store.statuses(unit) == ["committed"]
    found = store.database.rows("SELECT id, extract(hour FROM at AT TIME ZONE 'UTC')::int, waits FROM item ORDER BY id")
    assert found == [(1, 12, "1s"), (2, 12, "1s")]
    assert store.acknowledged() == [1, 2]
    assert store.session.applied("0", [1, 2, 3]) == {1, 2}


def test_the_drivers_transactions_are_pinned_too(stores: Stores) -> None:
    store = stores.open(CHANGING, apply=FIRING)
    with store.target.driver.transaction(lambda: pytest.fail("it has a connection")) as connection:  # type: ignore[attr-defined]
        connection.execute("SET search_path = elsewhere; SET lock_timeout = 1")
    store.target.begin_micro_batch(Fence("0", 1, 5))
    assert store.database.rows("SELECT micro_batch FROM public.kainite_fence") == [(5,)]


def test_a_role_with_settings_of_its_own_finds_the_tables_on_its_path(
    stores: Stores, postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    stores.open("CREATE TABLE item (id bigint PRIMARY KEY)")
    role = f"other_{conninfo_to_dict(postgres)['dbname']}"
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN SUPERUSER; CREATE SCHEMA own")
        admin.execute(f"ALTER ROLE {role} SET search_path = own; ALTER ROLE {role} SET lock_timeout = '1ms'")
        admin.execute(f"ALTER ROLE {role} SET TimeZone = 'Asia/Tokyo'")
    mine = Stores(Database(f"{postgres}&user={role}"))
    try:
        target = open_target(mine.database.url, stores.open("").catalogue)
        target.prepare("0", stores.open("").catalogue)
        target.raise_generation("0", 9)
        target.close()
        assert stores.database.rows("SELECT generation FROM own.kainite_fence") == [(9,)]
        assert "Kainite's tables are in other schemas, and are made anew" in caplog.messages
    finally:
        mine.close()
        with psycopg.connect(postgres, autocommit=True) as admin:
            admin.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")
