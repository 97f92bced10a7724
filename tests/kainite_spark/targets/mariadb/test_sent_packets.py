"""What goes into packets of statements, and what their answers mean."""

from __future__ import annotations

import pytest

from kainite_spark.targets.mariadb import rendering, sent_packets
from support.stores import Store, Stores

DDL = "CREATE TABLE item (id bigint PRIMARY KEY, v integer, t varchar(20))"


@pytest.fixture
def store(stores: Stores) -> Store:
    opened = stores.open(DDL)
    assert opened.statuses(opened.unit(0, *(opened.insert("item", id=n, v=0) for n in (1, 2)))) == ["committed"]
    return opened


def test_an_upsert_meets_no_other_row_by_a_unique_value(stores: Stores) -> None:
    store = stores.open("CREATE TABLE u (id bigint PRIMARY KEY, code integer UNIQUE)")
    units = [store.unit(1, store.insert("u", id=1, code=7)), store.unit(2, store.upsert("u", id=3, code=7))]
    assert store.statuses(*units) == ["committed", "failed"]
    assert store.rows("u") == [(1, 7)]


def test_a_group_takes_several_packets(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sent_packets, rendering):
        monkeypatch.setattr(module, "MOST_CHARACTERS", 200)
    rows = [store.insert("item", id=n, v=n, t="x" * (n % 20)) for n in range(10, 200)]
    changes = [store.update("item", {"id": n}, v=0) for n in range(10, 100)]
    assert store.statuses(store.unit(1, *rows), store.unit(2, *changes)) == ["committed"] * 2
    assert sum(row[1] for row in store.rows("item")) == sum(range(100, 200))
