"""What PostgreSQL answers about a unit fails that unit alone, whatever the code; Kainite's own tables are no unit's."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from kainite.base.errors import TargetUnavailableError
from kainite.settings import ApplySettings, TargetTriggers
from support.stores import Database, Store, Stores

GUARDED = """
    CREATE TABLE item (id bigint PRIMARY KEY, note text);
    CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.note IS NOT NULL THEN RAISE EXCEPTION 'not %', NEW.id USING ERRCODE = NEW.note; END IF;
        RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER guard AFTER INSERT ON item {} FOR EACH ROW EXECUTE FUNCTION guard();
"""

FORBIDDEN = {
    "a grant on one table is missing": "REVOKE ALL ON other FROM {role}",
    "row-level security": "ALTER TABLE other ENABLE ROW LEVEL SECURITY; ALTER TABLE other FORCE ROW LEVEL SECURITY",
}


@pytest.fixture
def lowly(postgres: str) -> Iterator[Stores]:
    """Gives the database to a role that is no superuser; the role owns it."""
    database = conninfo_to_dict(postgres)["dbname"]
    role = f"lowly_{database}"
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN; ALTER SCHEMA public OWNER TO {role}")
    opened = Stores(Database(f"{postgres}&user={role}"))
    yield opened
    opened.close()
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


def role_of(stores: Stores) -> str:
    return str(conninfo_to_dict(stores.database.url)["user"])


def one_of_seven_fails(store: Store, table: str, **row: object) -> str:
    """Applies a unit that the target refuses, among six others; returns its cause."""
    units = [store.unit(tid, store.insert("item", id=tid)) for tid in range(1, 8)]
    units[3] = store.unit(4, store.insert("item", id=4), store.insert(table, **row))
    outcomes = store.apply(*units)
    assert [outcome.status for outcome in outcomes] == ["committed"] * 3 + ["failed"] + ["committed"] * 3
    assert [row[0] for row in store.rows("item")] == [1, 2, 3, 5, 6, 7]
    again = store.apply(units[3])
    assert [(outcome.status, outcome.cause) for outcome in again] == [("failed", outcomes[3].cause)]
    return outcomes[3].cause or ""


@pytest.mark.parametrize("deferred", ["", "DEFERRABLE INITIALLY DEFERRED"], ids=["at once", "at the commit"])
@pytest.mark.parametrize("code", ["SH001", "20000", "55000", "2D000", "42501", "P0001", "25006", "40000", "XX001"])
def test_a_code_that_a_trigger_raises_fails_its_unit_alone(stores: Stores, code: str, deferred: str) -> None:
    store = stores.open(GUARDED.format(deferred), apply=ApplySettings(triggers=TargetTriggers.FIRE))
    assert "not 44" in one_of_seven_fails(store, "item", id=44, note=code)


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_table_that_may_not_be_written_fails_its_unit_alone(lowly: Stores, what: str) -> None:
    store = lowly.open("CREATE TABLE item (id bigint PRIMARY KEY); CREATE TABLE other (id bigint PRIMARY KEY)")
    store.database.run(FORBIDDEN[what].format(role=role_of(lowly)))
    assert "other" in one_of_seven_fails(store, "other", id=1)


def test_a_missing_grant_on_kainites_own_table_is_no_units_fault(lowly: Stores) -> None:
    store = lowly.open("CREATE TABLE item (id bigint PRIMARY KEY)")
    unit = store.unit(1, store.insert("item", id=1))
    store.database.run(f"REVOKE INSERT ON kainite_applied FROM {role_of(lowly)}")
    with pytest.raises(TargetUnavailableError, match="permission denied for table kainite_applied"):
        store.apply(unit)
    store.database.run(f"GRANT INSERT ON kainite_applied TO {role_of(lowly)}")
    assert store.statuses(unit) == ["committed"]


def test_a_database_that_became_read_only_is_no_units_fault(stores: Stores) -> None:
    store = stores.open("CREATE TABLE item (id bigint PRIMARY KEY)")
    name = conninfo_to_dict(stores.database.url)["dbname"]
    store.database.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(TargetUnavailableError, match="read-only"):
        stores.session(store.target).apply(store.fence, [store.unit(1, store.insert("item", id=1))])
