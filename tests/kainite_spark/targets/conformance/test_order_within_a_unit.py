"""Set-based statements leave the rows that the source's order leaves, also where the target's equality is wide."""

from __future__ import annotations

import pytest

from support.stores import Store, Stores


@pytest.fixture
def folded(stores: Stores) -> Store:
    """Gives a table whose key ignores case."""
    store = stores.open("CREATE TABLE person (name text COLLATE NOCASE PRIMARY KEY, age integer)")
    assert store.statuses(store.unit(1, store.insert("person", name="Ann", age=1))) == ["committed"]
    return store


# The embedded PostgreSQL has no ICU, and so no collation that ignores case.
@pytest.mark.parametrize("database", ["sqlite", "exec"], indirect=True)
def test_keys_that_differ_in_case_are_one_row(folded: Store) -> None:
    unit = folded.unit(2, folded.delete("person", name="Ann"), folded.upsert("person", name="ann", age=2))
    assert folded.statuses(unit) == ["committed"]
    assert folded.rows("person") == [("ann", 2)]


def test_a_number_is_its_text(stores: Stores) -> None:
    store = stores.open("CREATE TABLE item (id bigint PRIMARY KEY, v integer)")
    units = [
        store.unit(1, store.insert("item", id=5, v=1)),
        store.unit(2, store.delete("item", id=5), store.upsert("item", id="5", v=2)),
    ]
    assert store.statuses(*units) == ["committed"] * 2
    assert store.rows("item") == [(5, 2)]


CODES = """
    CREATE TABLE doc (id bigint PRIMARY KEY, code bigint NOT NULL UNIQUE, v integer);
    CREATE TABLE part (
        id bigint PRIMARY KEY, doc_code bigint NOT NULL REFERENCES doc (code) ON DELETE CASCADE ON UPDATE CASCADE);
"""


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("again", [1, 2])
def test_a_parent_that_a_unique_key_names_is_deleted_and_inserted_with_its_child(
    stores: Stores, told: bool, again: int
) -> None:
    store = stores.open(CODES)
    setup = store.unit(1, store.insert("doc", id=1, code=7))
    replaced = store.unit(
        2,
        store.delete("doc", {"code": 7} if told else {}, id=1),
        store.insert("doc", id=again, code=7),
        store.insert("part", id=5, doc_code=7),
    )
    assert store.statuses(setup, replaced) == ["committed"] * 2
    assert store.rows("part") == [(5, 7)]


def test_a_child_of_a_code_that_changed_hands_stays_with_the_new_holder(stores: Stores) -> None:
    store = stores.open(CODES)
    setup = store.unit(1, store.insert("doc", id=1, code=7), store.insert("doc", id=2, code=9))
    moved = store.unit(
        2,
        store.update("doc", {"id": 1}, code=8),
        store.update("doc", {"id": 2}, code=7),
        store.insert("part", id=5, doc_code=7),
    )
    assert store.statuses(setup, moved) == ["committed"] * 2
    assert store.rows("part") == [(5, 7)]


OWNED = """
    CREATE TABLE owner (id bigint PRIMARY KEY);
    CREATE TABLE pet (
        id bigint PRIMARY KEY, owner_id bigint NOT NULL REFERENCES owner ON DELETE CASCADE, name text DEFAULT 'new');
    CREATE TABLE toy (id bigint PRIMARY KEY, pet_id bigint NOT NULL REFERENCES pet ON DELETE CASCADE);
"""


def test_an_upsert_after_the_cascade_finds_its_row_gone(stores: Stores) -> None:
    store = stores.open(OWNED)
    setup = [store.insert("owner", id=1), store.insert("owner", id=2)]
    setup += [store.insert("pet", id=1, owner_id=1, name="old"), store.insert("toy", id=1, pet_id=1)]
    unit = store.unit(2, store.delete("owner", id=1), store.upsert("pet", id=1, owner_id=2))
    assert store.statuses(store.unit(1, *setup), unit) == ["committed"] * 2
    assert store.rows("pet") == [(1, 2, "new")]
    assert store.rows("toy") == []


def test_cascaded_deletes_that_the_source_tells_may_come_after_their_parent(stores: Stores) -> None:
    store = stores.open(OWNED)
    setup = [store.insert("owner", id=1), store.insert("pet", id=1, owner_id=1), store.insert("toy", id=1, pet_id=1)]
    for before in ({"owner_id": 1}, {}):
        tid = 2 if before else 4
        gone = [store.delete("owner", id=1), store.delete("pet", before, id=1), store.delete("toy", id=1)]
        assert store.statuses(store.unit(tid, *setup), store.unit(tid + 1, *gone)) == ["committed"] * 2
        assert [store.rows(table) for table in ("owner", "pet", "toy")] == [[], [], []]
