"""Units whose foreign keys act are ordered: their job instances may run in any order."""

from __future__ import annotations

from itertools import permutations

import pytest

from kainite.uow.delta import Delta
from kainite_spark.executor.group_commit import apply_units
from kainite_spark.plan.schedule import schedule
from kainite_spark.targets.contract import Unit
from support.stores import DATABASES, Store, Stores
from support.unit_states import unit_state

OWNED = """
    CREATE TABLE owner (id bigint PRIMARY KEY);
    CREATE TABLE pet (id bigint PRIMARY KEY, owner_id bigint REFERENCES owner ON DELETE {action}, v bigint);
    CREATE TABLE toy (id bigint PRIMARY KEY, pet_id bigint REFERENCES pet ON DELETE CASCADE, v bigint);
"""


def owned(stores: Stores, action: str) -> Store:
    store = stores.open(OWNED.format(action=action))
    rows = [store.insert("owner", id=number) for number in (1, 2)]
    rows += [store.insert("pet", id=1, owner_id=1), store.insert("toy", id=1, pet_id=1)]
    assert store.statuses(store.unit(0, *rows)) == ["committed"]
    return store


def apply_lanes(stores: Stores, store: Store, units: list[Unit], *, backwards: bool) -> None:
    """Applies units as job instances do, one session each, one instance after the other."""
    known = {unit.tid: unit for unit in units}
    pending = [unit_state(u.tid, u.written, u.read, count=len(u.deltas)) for u in units]
    lanes = schedule(pending, len(units))
    for lane in reversed(lanes) if backwards else lanes:
        session = stores.session(store.target)
        outcomes = apply_units(session, store.fence, [known[unit.tid] for unit in lane])
        assert {outcome.status.value for outcome in outcomes} <= {"committed"}


@DATABASES
@pytest.mark.parametrize("action", ["CASCADE", "SET NULL"])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_child_that_moved_without_before_survives_its_old_parent(
    stores: Stores, action: str, backwards: bool
) -> None:
    store = owned(stores, action)
    moved = store.unit(1, store.update("pet", {"id": 1}, owner_id=2))
    gone = store.unit(2, store.delete("owner", id=1))
    apply_lanes(stores, store, [moved, gone], backwards=backwards)
    assert store.rows("pet") == [(1, 2, None)]
    assert store.rows("toy") == [(1, 1, None)]


@DATABASES
@pytest.mark.parametrize("action", ["CASCADE", "SET NULL"])
def test_in_the_wrong_order_two_sessions_would_lose_it(stores: Stores, action: str) -> None:
    """Shows with two sessions, each with one of the units, that nothing in the target keeps the order."""
    store = owned(stores, action)
    one, other = (stores.session(store.target) for _ in range(2))
    one.apply(store.fence, [store.unit(2, store.delete("owner", id=1))])
    moved = apply_units(other, store.fence, [store.unit(1, store.update("pet", {"id": 1}, owner_id=2))])
    assert [outcome.status.value for outcome in moved] == ["failed" if action == "CASCADE" else "committed"]


@DATABASES
def test_a_grandchild_changes_before_its_grandparent_goes(stores: Stores) -> None:
    store = owned(stores, "CASCADE")
    changed = store.unit(1, store.update("toy", {"id": 1}, {"id": 1, "pet_id": 1, "v": None}, v=5))
    apply_lanes(stores, store, [changed, store.unit(2, store.delete("owner", id=1))], backwards=True)
    assert store.rows("toy") == []


PARTITIONED = """
    CREATE TABLE doc (id bigint PRIMARY KEY, v bigint) PARTITION BY RANGE (id);
    CREATE TABLE doc_1 PARTITION OF doc FOR VALUES FROM (0) TO (100);
    CREATE TABLE doc_2 PARTITION OF doc FOR VALUES FROM (100) TO (200);
    CREATE TABLE part (id bigint PRIMARY KEY, doc_id bigint REFERENCES doc ON DELETE CASCADE);
"""


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("names", sorted({*permutations(["doc", "doc_1", "doc_1"])}))
def test_a_row_is_the_same_by_the_name_of_its_partition(stores: Stores, names: tuple[str, ...]) -> None:
    store = stores.open(PARTITIONED)
    assert store.catalogue.tables["doc_1"].part_of == "doc"
    inserted, changed, gone = names
    units = [
        store.unit(1, store.insert(inserted, id=1, v=1)),
        store.unit(2, store.update(changed, {"id": 1}, v=2), store.insert("part", id=1, doc_id=1)),
        store.unit(3, store.update("part", {"id": 1}, doc_id=None)),
        store.unit(4, store.delete(gone, id=1)),
    ]
    apply_lanes(stores, store, units, backwards=True)
    assert store.rows("part") == [(1, None)]
    within: list[Delta] = [store.delete(inserted, id=5), store.upsert(changed, id="5", v=7)]
    assert store.statuses(store.unit(5, store.insert("doc", id=5, v=1)), store.unit(6, *within)) == ["committed"] * 2
    assert store.rows("doc") == [(5, 7)]
