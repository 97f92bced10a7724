"""Rows of one table that name each other, and that one statement of the source has made or deleted.

The table's triggers fire in the target, so its changes are made one by one; the parent that goes first is refused then.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kainite.settings import ApplySettings, TargetTriggers
from kainite.uow.delta import Delta
from kainite_spark.targets.contract import Unit
from support.stores import Store, Stores

FIRE = ApplySettings(triggers=TargetTriggers.FIRE)
SEEN = """
    CREATE TABLE other (id integer PRIMARY KEY);
    CREATE TABLE seen (id serial PRIMARY KEY, what text);
    CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO seen (what) SELECT TG_OP || ' ' || count(*) FROM tree; RETURN NULL; END $$;
    CREATE TRIGGER see AFTER INSERT OR UPDATE OR DELETE ON tree FOR EACH ROW EXECUTE FUNCTION see();
    INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 2), (8, NULL), (9, 8);
    TRUNCATE seen;
"""
TREE = "CREATE TABLE tree (id integer PRIMARY KEY, up integer {references});"
PARTS = """
    CREATE TABLE tree (id integer PRIMARY KEY, up integer REFERENCES tree ON DELETE RESTRICT) PARTITION BY HASH (id);
    CREATE TABLE tree_0 PARTITION OF tree FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE tree_1 PARTITION OF tree FOR VALUES WITH (MODULUS 2, REMAINDER 1);
"""


TWO_PARTS = """
    CREATE TABLE tree (id integer PRIMARY KEY, up integer REFERENCES tree) PARTITION BY LIST (id);
    CREATE TABLE p1 PARTITION OF tree FOR VALUES IN (1);
    CREATE TABLE p2 PARTITION OF tree DEFAULT;
"""


def tree(references: str) -> str:
    return TREE.format(references=references) + SEEN


def numbered(store: Store, tid: int, *deltas: Delta) -> Unit:
    return store.unit(tid, *(replace(delta, ordinal=place) for place, delta in enumerate(deltas)))


def left(store: Store) -> list[tuple[Any, ...]]:
    return store.database.rows("SELECT id FROM tree ORDER BY id")


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize(
    "tables",
    [
        tree("REFERENCES tree"),
        tree("REFERENCES tree ON DELETE RESTRICT ON UPDATE CASCADE"),
        tree("REFERENCES tree, ADD_ON").replace(", ADD_ON", ", FOREIGN KEY (up) REFERENCES tree ON DELETE SET DEFAULT"),
        PARTS + SEEN,
    ],
    ids=["no action", "restrict", "beside a key that acts", "partitions"],
)
def test_a_parent_is_deleted_with_its_children(stores: Stores, tables: str, told: bool) -> None:
    store = stores.open(tables, apply=FIRE)
    gone = [store.delete("tree", {"up": n - 1 or None} if told else {}, id=n) for n in (1, 2, 3)]
    unit = numbered(store, 1, store.insert("other", id=1), *gone, store.insert("other", id=2))
    assert [outcome.cause for outcome in store.apply(unit)] == [None]
    assert (left(store), store.rows("other")) == ([(8,), (9,)], [(1,), (2,)])
    assert store.database.rows("SELECT what FROM seen ORDER BY id") == [("DELETE 2",)] * 3


@pytest.mark.parametrize("references", ["REFERENCES tree", "REFERENCES tree ON DELETE CASCADE"])
def test_a_child_is_inserted_with_its_parent_behind_it(stores: Stores, references: str) -> None:
    store = stores.open(tree(references), apply=FIRE)
    unit = numbered(store, 1, *(store.insert("tree", id=n, up=up) for n, up in ((21, 22), (22, 23), (23, None))))
    assert [outcome.cause for outcome in store.apply(unit)] == [None]
    assert left(store)[-3:] == [(21,), (22,), (23,)]
    assert store.database.rows("SELECT what FROM seen") == [("INSERT 8",)] * 3


def test_rows_that_the_target_takes_one_by_one_stay_one_by_one(stores: Stores) -> None:
    store = stores.open(tree("REFERENCES tree"), apply=FIRE)
    unit = numbered(store, 1, *(store.delete("tree", id=n) for n in (3, 2, 1)))
    store.session.apply_in_source_order(store.fence, unit)
    assert store.acknowledged() == [1]
    assert store.database.rows("SELECT what FROM seen ORDER BY id") == [("DELETE 4",), ("DELETE 3",), ("DELETE 2",)]


def test_what_still_names_a_deleted_row_is_refused(stores: Stores) -> None:
    """Deletes a parent whose child stays, and one whose child is deleted behind another change."""
    store = stores.open(tree("REFERENCES tree"), apply=FIRE)
    stays = numbered(store, 1, store.delete("tree", id=1), store.delete("tree", id=2))
    late = numbered(store, 2, store.delete("tree", id=8), store.insert("other", id=2), store.delete("tree", id=9))
    outcomes = store.apply(stays, late)
    assert [outcome.status for outcome in outcomes] == ["failed"] * 2
    assert all("still referenced" in (outcome.cause or "") for outcome in outcomes)
    assert (len(left(store)), store.rows("other"), store.rows("seen")) == (5, [], [])


def test_a_row_that_is_missing_is_refused(stores: Stores) -> None:
    store = stores.open(tree("REFERENCES tree"), apply=FIRE)
    unit = numbered(store, 1, *(store.delete("tree", id=n) for n in (1, 2, 3, 4)))
    [outcome] = store.apply(unit)
    assert outcome.status == "failed"
    assert len(left(store)) == 5


@pytest.mark.parametrize("whole", [True, False])
def test_rows_in_two_partitions_go_together_whatever_names_them(stores: Stores, whole: bool) -> None:
    store = stores.open(TWO_PARTS + SEEN, apply=FIRE)
    gone = [store.delete("tree" if whole else name, id=n) for n, name in ((1, "p1"), (2, "p2"), (3, "p2"))]
    [outcome] = store.apply(numbered(store, 1, *gone))
    assert outcome.cause is None
    assert left(store) == [(8,), (9,)]
    assert store.database.rows("SELECT what FROM seen ORDER BY id") == [("DELETE 2",)] * 3


@pytest.mark.parametrize("told", [True, False])
def test_rows_in_two_partitions_that_no_trigger_sees(stores: Stores, told: bool) -> None:
    """Inserts children before their parents, as one statement of the source may tell them, and deletes the parents."""
    store = stores.open(TWO_PARTS)
    born = [store.insert("p1" if n == 1 else "p2", id=n, up=up) for n, up in ((2, 1), (3, 2), (4, 1), (1, None))]
    before = {2: 1, 3: 2, 4: 1}
    gone = [store.delete("p1" if n == 1 else "p2", {"up": before.get(n)} if told else {}, id=n) for n in (1, 2, 3, 4)]
    made, [deleted] = store.apply(numbered(store, 1, *born)), store.apply(numbered(store, 2, *gone))
    assert ([outcome.cause for outcome in made], deleted.cause) == ([None], None)
    assert left(store) == []
