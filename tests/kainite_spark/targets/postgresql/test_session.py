"""PostgreSQL alone: its types, its defaults, lost connections."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from kainite.base.errors import TargetUnavailableError
from support.stores import Stores
from support.waiting import eventually

TYPES = """
    CREATE TYPE mood AS ENUM ('fine', 'bad');
    CREATE DOMAIN percent AS integer CHECK (VALUE BETWEEN 0 AND 100);
    CREATE TABLE every (
        id bigint PRIMARY KEY, n numeric, n2 numeric(6,2), r double precision, t text, v varchar(3), c char(4),
        b boolean, u uuid, d date, ts timestamptz, tz timestamp, i interval, j json, jb jsonb, y bytea, a int[],
        m mood, p percent);
"""

SALES = """
    CREATE SCHEMA sales;
    CREATE TABLE sales.item (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, price numeric DEFAULT 7,
        twice numeric GENERATED ALWAYS AS (price * 2) STORED);
"""


def test_every_type_comes_out_as_it_went_in(stores: Stores) -> None:
    store = stores.open(TYPES)
    row = {
        "id": 2**62, "n": "123456789012345678901234567890.5", "n2": 1.005, "r": 1e-300,
        "t": "ü \U0001f600 \" \\ \n", "v": "äöü", "c": "ab", "b": True, "d": "2026-02-28",
        "u": "6F9619FF-8B86-D011-B42D-00CF4FC964FF",
        "ts": "2026-02-28T23:00:00.123456+02:00", "tz": "2026-02-28 23:00:00", "i": "1 day 02:00:00",
        "j": {"a": [1, None]}, "jb": ["x", {"y": 1.50}], "y": "\\xdeadbeef", "a": [1, None, 3], "m": "fine", "p": 100,
    }  # fmt: skip
    assert store.statuses(store.unit(1, store.insert("every", **row))) == ["committed"]
    query = "SELECT {} FROM every"
    texts = ", ".join(f"{column}::text" for column in row)
    expected = {
        **{column: str(value) for column, value in row.items()},
        "n2": "1.01", "b": "true", "u": str(row["u"]).lower(), "ts": "2026-02-28 21:00:00.123456+00", "r": "1e-300",
        "j": '{"a":[1,null]}', "jb": '["x", {"y": 1.5}]', "a": "{1,NULL,3}", "c": "ab", "i": "1 day 02:00:00",
    }  # fmt: skip
    with psycopg.connect(store.database.url, options="-c TimeZone=UTC") as connection:
        found = connection.execute(query.format(texts).replace('"', "")).fetchone()
    assert dict(zip(row, found or (), strict=True)) == expected


def test_null_is_null_in_every_type_and_updates_keep_types(stores: Stores) -> None:
    store = stores.open(TYPES)
    columns = [column for column in store.catalogue.tables["every"].columns if column != "id"]
    full: dict[str, Any] = {"jb": {"a": 1}, "j": [1], "a": [1], "y": "\\x00", "n": 10**40, "t": "x"}
    nulls = dict.fromkeys(columns)
    first = store.unit(1, store.insert("every", id=1, **nulls))
    second = store.unit(2, store.update("every", {"id": "1"}, **full))
    assert store.statuses(first) == ["committed"]
    assert set(store.rows("every")[0][1:]) == {None}
    assert store.statuses(second) == ["committed"]
    assert store.database.rows("SELECT jb, j, a, y, n, t FROM every") == [({"a": 1}, [1], [1], b"\0", 10**40, "x")]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("n", "abc"), ("v", "four"), ("c", "fiver"), ("u", "x"), ("d", "2026-02-30"), ("b", "maybe"), ("m", "worse"),
        ("p", 101), ("y", "\\xzz"), ("t", "nul \0"), ("id", 2**64), ("t", "half \ud800"), ("n2", 12345),
        ("a", {"x": 1}),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_fails_its_unit_alone(stores: Stores, column: str, value: Any) -> None:
    store = stores.open(TYPES)
    bad = store.unit(2, store.insert("every", id=2))
    delta = type(bad.deltas[0])("every", bad.deltas[0].op, {"id": 2}, {"id": 2, column: value}, {})
    units = [
        store.unit(1, store.insert("every", id=1)),
        type(bad)(2, "T-2", (delta,)),
        store.unit(3, store.insert("every", id=3)),
    ]
    assert store.statuses(*units) == ["committed", "failed", "committed"]
    assert [row[0] for row in store.rows("every")] == [1, 3]


def test_schemas_identity_generated_and_default_columns(stores: Stores) -> None:
    store = stores.open(SALES, ("sales",))
    units = [
        store.unit(1, store.insert("sales.item", id=5)),
        store.unit(2, store.update("sales.item", {"id": 5}, id=5, price=8)),
        store.unit(3, store.upsert("sales.item", id=6, price=1)),
    ]
    assert store.statuses(*units) == ["committed"] * 3
    assert store.database.rows("SELECT * FROM sales.item ORDER BY id") == [(5, 8, 16), (6, 1, 2)]


def test_a_cut_connection_is_opened_again(stores: Stores) -> None:
    store = stores.open()
    first, second = (store.unit(tid, store.insert("audit", what="x", at=tid)) for tid in (1, 2))
    assert store.statuses(first) == ["committed"]
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kainite apply'"
    assert store.database.rows(cut) == [(True,), (True,)], "the driver's, and the session's"
    with pytest.raises(TargetUnavailableError):
        store.session.apply(store.fence, [second])
    assert store.statuses(first, second) == ["committed"] * 2
    assert len(store.rows("audit")) == 2


def test_a_foreign_key_of_a_table_that_was_empty_is_checked_by_its_index_once_the_table_has_grown(
    stores: Stores,
) -> None:
    # PostgreSQL keeps the plan of a check, made when the table was small, until the table is analyzed.
    store = stores.open(
        "CREATE TABLE parent (id bigint PRIMARY KEY);"
        "CREATE TABLE child (id bigint PRIMARY KEY, parent bigint REFERENCES parent)"
    )
    with psycopg.connect(store.database.url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE parent")
    for tid in range(1, 11):
        family = store.unit(tid, store.insert("parent", id=tid), store.insert("child", id=tid, parent=tid))
        assert store.statuses(family) == ["committed"]
    store.database.run("INSERT INTO parent SELECT generate_series(100, 5000)")
    children = [store.insert("child", id=number, parent=number) for number in range(4000, 4200)]
    assert store.statuses(store.unit(11, *children)) == ["committed"]
    store.session.close()  # which tells the server's statistics
    read = "SELECT seq_tup_read, idx_scan FROM pg_stat_user_tables WHERE relname = 'parent'"
    eventually(lambda: store.database.rows(read)[0][1] >= 200 or store.database.rows(read)[0][0] > 200_000)
    assert store.database.rows(read)[0][0] < 20_000
