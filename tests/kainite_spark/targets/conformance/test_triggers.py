"""Changes that fire triggers keep their places among all others, and what may not fire is refused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kainite.base.errors import CatalogueError, TargetError
from kainite.settings import ApplySettings, TargetTriggers
from kainite.uow.delta import Delta
from kainite_spark.targets.contract import Unit
from support.stores import DATABASES, Store, Stores

FIRE = ApplySettings(triggers=TargetTriggers.FIRE)

TABLES = """
    CREATE TABLE o (id integer PRIMARY KEY, total integer NOT NULL, seen integer);
    CREATE TABLE l (id integer PRIMARY KEY, o integer, qty integer NOT NULL);
    CREATE TABLE p (id integer PRIMARY KEY);
    CREATE TABLE c (id integer PRIMARY KEY, p integer REFERENCES p ON DELETE CASCADE);
    INSERT INTO o VALUES (1, 0, 0); INSERT INTO l VALUES (1, 1, 0);
    INSERT INTO p VALUES (1); INSERT INTO c VALUES (1, 1);
"""


def trigger(on: str, event: str, act: str, *, name: str = "t", more: str = "") -> dict[str, str]:
    """Returns the statements that make a trigger behind each changed row, by kind of database."""
    return {
        "mariadb": f"CREATE TRIGGER {name} AFTER {event} ON {on} FOR EACH ROW {act};",
        "sqlite": f"CREATE TRIGGER {name} AFTER {event} ON {on} BEGIN {act}; END;",
        "postgresql": f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {act}; "
        f"RETURN NULL; END $$; CREATE {'CONSTRAINT ' if more else ''}TRIGGER {name} AFTER {event} ON {on} {more} "
        f"FOR EACH ROW EXECUTE FUNCTION {name}();",
    }


ADDS = trigger("l", "UPDATE", "UPDATE o SET total = total + 5 WHERE id = 1")
LOOKS = trigger("l", "UPDATE", "UPDATE o SET seen = seen * 10 + total WHERE id = 1")
CASCADED = trigger("c", "DELETE", "UPDATE o SET total = total + 5 WHERE id = 1", name="u")


def opened(stores: Stores, *triggers: dict[str, str], apply: ApplySettings = FIRE) -> Store:
    kind = stores.database.kind
    return stores.open(TABLES + "".join(made[kind] for made in triggers), apply=apply)


def numbered(store: Store, tid: int, *deltas: Delta) -> Unit:
    return store.unit(tid, *(replace(delta, ordinal=place) for place, delta in enumerate(deltas)))


def orders(store: Store) -> list[tuple[int, ...]]:
    return store.rows("o")


@DATABASES
def test_no_change_is_folded_past_a_trigger_on_another_table(stores: Stores) -> None:
    store = opened(stores, ADDS)
    units = [
        store.unit(1, store.update("o", {"id": 1}, total=10)),
        store.unit(2, store.update("l", {"id": 1}, qty=1)),
        store.unit(3, store.update("o", {"id": 1}, total=20)),
    ]
    assert store.statuses(*units) == ["committed"] * 3
    assert orders(store) == [(1, 20, 0)]


@DATABASES
def test_a_trigger_reads_what_was_there_when_it_fired_in_the_source(stores: Stores) -> None:
    store = opened(stores, LOOKS)
    units = [
        store.unit(1, store.update("l", {"id": 1}, qty=1)),
        store.unit(2, store.update("o", {"id": 1}, total=7)),
        store.unit(3, store.update("l", {"id": 1}, qty=2), store.insert("l", id=2, qty=0)),
        store.unit(4, store.update("o", {"id": 1}, total=8)),
        store.unit(5, store.update("l", {"id": 2}, qty=3)),
    ]
    assert store.statuses(*units) == ["committed"] * 5
    assert orders(store) == [(1, 8, 78)]


@DATABASES
def test_a_delete_that_cascades_to_a_table_with_a_trigger_ends_what_can_be_folded(stores: Stores) -> None:
    store = opened(stores, CASCADED)
    units = [
        store.unit(1, store.update("o", {"id": 1}, total=10)),
        store.unit(2, store.delete("p", id=1)),
        store.unit(3, store.update("o", {"id": 1}, total=20)),
    ]
    assert store.statuses(*units) == ["committed"] * 3
    assert orders(store) == [(1, 20, 0)]


@DATABASES
@pytest.mark.parametrize("first", ["o", "l"])
def test_the_order_within_a_unit_is_the_sources(stores: Stores, first: str) -> None:
    store = opened(stores, ADDS)
    line, order = store.update("l", {"id": 1}, qty=1), store.update("o", {"id": 1}, total=20)
    deltas = (order, line) if first == "o" else (line, order)
    assert store.statuses(numbered(store, 1, *deltas)) == ["committed"]
    assert orders(store) == [(1, 25 if first == "o" else 20, 0)]


@DATABASES
def test_rows_of_one_table_with_a_trigger_change_one_by_one(stores: Stores) -> None:
    store = opened(
        stores, trigger("l", "UPDATE", "UPDATE o SET seen = seen * 10 + (SELECT sum(qty) FROM l) WHERE id = 1")
    )
    filled = store.unit(1, *(store.insert("l", id=n, qty=0) for n in (2, 3)))
    changed = numbered(store, 2, *(store.update("l", {"id": n}, qty=n) for n in (3, 1, 2)))
    assert store.statuses(filled, changed) == ["committed"] * 2
    assert orders(store) == [(1, 0, 346)]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_deferred_trigger_fires_at_the_end_of_its_unit(stores: Stores) -> None:
    deferred = trigger(
        "l", "UPDATE", "UPDATE o SET seen = seen * 10 + total WHERE id = 1", more="DEFERRABLE INITIALLY DEFERRED"
    )
    store = opened(stores, deferred)
    units = [
        numbered(store, 1, store.update("l", {"id": 1}, qty=1), store.update("o", {"id": 1}, total=4)),
        numbered(store, 2, store.update("l", {"id": 1}, qty=2), store.update("o", {"id": 1}, total=5)),
        store.unit(3, store.update("o", {"id": 1}, total=6)),
    ]
    assert store.statuses(*units) == ["committed"] * 3
    assert orders(store) == [(1, 6, 45)]


@DATABASES
def test_a_trigger_that_comes_while_units_are_applied_is_seen_by_the_transaction_that_would_fire_it(
    stores: Stores,
) -> None:
    store = opened(stores)
    assert store.statuses(store.unit(0, store.update("o", {"id": 1}, total=1))) == ["committed"]
    stores.database.run(ADDS[stores.database.kind])
    units = [
        store.unit(1, store.update("o", {"id": 1}, total=10)),
        store.unit(2, store.update("l", {"id": 1}, qty=1)),
        store.unit(3, store.update("o", {"id": 1}, total=20)),
    ]
    assert store.statuses(*units) == ["committed"] * 3
    assert orders(store) == [(1, 20, 0)]


@DATABASES
def test_triggers_are_refused_at_the_start_and_named_with_what_they_do(stores: Stores) -> None:
    with pytest.raises(CatalogueError) as refused:
        opened(stores, ADDS, CASCADED, apply=ApplySettings())
    message = str(refused.value)
    assert "2 triggers" in message
    assert "l: CREATE TRIGGER t AFTER UPDATE ON" in message
    assert "c: CREATE TRIGGER u AFTER DELETE ON" in message
    assert all(word in message for word in ("targetTriggers=off", "targetTriggerTables", "targetTriggers=fire"))


@DATABASES
def test_triggers_of_a_table_that_is_named_are_meant(stores: Stores) -> None:
    store = opened(stores, ADDS, apply=ApplySettings(trigger_tables=("l",)))
    assert store.statuses(store.unit(1, store.update("l", {"id": 1}, qty=1))) == ["committed"]
    assert orders(store) == [(1, 5, 0)]


@DATABASES
def test_a_table_that_does_not_exist_cannot_be_meant(stores: Stores) -> None:
    with pytest.raises(CatalogueError, match="targetTriggerTables: the target has no table lines"):
        opened(stores, apply=ApplySettings(trigger_tables=("lines",)))


@DATABASES
def test_a_trigger_that_comes_later_stops_the_job_before_it_changes_anything(stores: Stores) -> None:
    store = opened(stores, apply=ApplySettings())
    first, second = (store.unit(tid, store.update("l", {"id": 1}, qty=tid)) for tid in (1, 2))
    assert store.statuses(first) == ["committed"]
    stores.database.run(ADDS[stores.database.kind])
    with pytest.raises(TargetError, match=r"l: CREATE TRIGGER t AFTER UPDATE"):
        store.apply(second)
    assert orders(store) == [(1, 0, 0)]
    assert store.acknowledged() == [1]
