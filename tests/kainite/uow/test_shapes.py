"""A delta that is judged by its shape comes to what the general way comes to, whatever its values are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import DeltaError
from kainite.uow import shapes
from kainite.uow.catalogue.tables import Catalogue, ReferentialAction, TypeFamily, UniqueKey
from kainite.uow.delta import parse_delta
from kainite.uow.identity import identity_of, identity_of_emitted
from kainite.uow.signing import SignedDeltas, Signing
from support import tables
from support.tables import INTEGER, SHOP, columns, foreign_key

ID = columns(id=INTEGER)
AGAIN = UniqueKey("ab", ("a", "b"), nulls_distinct=False)
CASCADE = replace(foreign_key(("o",), "owner", ("id",)), on_delete=ReferentialAction.CASCADE)
COMPUTED = {"n": replace(columns(n=INTEGER)["n"], generated=True)}
TABLES = Catalogue(
    {
        **SHOP.tables,
        "partly": tables.table("partly", ID, ("id",), UniqueKey("some", ())),
        "open": tables.table("open", columns(id=INTEGER, a=INTEGER, b=INTEGER), ("id",), AGAIN),
        "computed": tables.table("computed", ID | COMPUTED),
        "opaque": tables.table("opaque", columns(id=TypeFamily.OPAQUE, v=INTEGER)),
        "acting": tables.table("acting", columns(id=INTEGER, o=INTEGER), ("id",), CASCADE),
        "owner": tables.table("owner", ID),
    },
    "public",
)
KINDS = [(name, tuple(table.columns)) for name, table in TABLES.tables.items()]
VALUES = st.sampled_from([1, 2, "1", "01", " 2", 1.0, 1.5, -0.0, True, None, "x", "x ", [1], {"a": 1}, 10**19])


@st.composite
def alike(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Generates deltas with the same names and other values."""
    name, known = draw(st.sampled_from(KINDS))
    names = st.lists(st.sampled_from([*known, "id", "other"]), unique=True, max_size=4)
    key = draw(st.sampled_from([list(TABLES.tables[name].primary_key), [], draw(names)]))
    row, before = (
        draw(st.sampled_from([list(known), draw(names)])),
        draw(st.sampled_from([[], list(known), draw(names)])),
    )
    given = {"table": draw(st.sampled_from([name, f"public.{name}", "none", 0])), "op": draw(OPERATIONS)}
    fields = [("key", key), ("row", [] if given["op"] == "delete" else row), ("before", before)]
    present = draw(st.lists(st.sampled_from(["ordinal", "key", "row", "before", "stray", "mayMiss"]), max_size=2))
    sound = draw(st.integers(0, 3)) > 0

    def delta() -> dict[str, Any]:
        values: dict[str, Any] = {}
        for field, wanted in fields:
            pool = st.integers(1, 2) if sound else VALUES
            columns = {column: values.get(column, draw(pool)) for column in wanted}
            values |= columns if draw(st.booleans()) else {}
            if columns or field in present:
                given[field] = columns if sound else draw(st.sampled_from([columns, columns, columns, None, "id", [1]]))
        if "ordinal" in present:
            given["ordinal"] = draw(st.sampled_from([0, 1, None, -1, True, "1"]))
        if "mayMiss" in present:
            given["mayMiss"] = draw(st.sampled_from([True, False, True, None, 1]))
        if "stray" in present and not sound:
            given["stray"] = 1
        return dict(given)

    return [delta() for _ in range(draw(st.integers(2, 4)))]


OPERATIONS = st.sampled_from(["insert", "update", "delete", "upsert", "insert", "update", "replace"])


@given(st.lists(alike(), max_size=3))
def test_shapes_come_to_what_the_general_way_comes_to(groups: list[list[dict[str, Any]]]) -> None:
    by_shape, generally = Signing(TABLES), Signing(TABLES)
    for item in (item for group in groups for item in group):
        expected = general(generally, item)
        check_judged(by_shape, item, expected)
        if not isinstance(expected, str):
            assert identity_of_emitted(item) == identity_of(parse_delta(item))


def check_judged(signing: Signing, item: dict[str, Any], expected: SignedDeltas | str) -> None:
    """Checks that a delta is judged as expected; a text is expected as the cause why it is none."""
    found = SignedDeltas()
    if isinstance(expected, str):
        with pytest.raises(DeltaError) as raised:
            signing.judge(item, found)
        assert (str(raised.value), found) == (expected, SignedDeltas())
    else:
        signing.judge(item, found)
        assert found == expected


def general(signing: Signing, item: dict[str, Any]) -> SignedDeltas | str:
    """Returns what the general way comes to; the error's text where the delta is none."""
    try:
        return signing.judge_all([parse_delta(item)])
    except DeltaError as error:
        return str(error)


LINE = {"table": "order_line", "op": "insert", "row": {"order_id": 4, "line": 1, "qty": 2}}


def test_the_second_delta_of_a_shape_is_judged_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    signing, found = Signing(SHOP), SignedDeltas()
    signing.judge(LINE, found)
    monkeypatch.setattr("kainite.uow.signing.parse_delta", None)
    signing.judge({**LINE, "row": {"order_id": 5, "line": 1, "qty": 2}}, found)
    assert [orjson.loads(item)["key"] for item in found.items] == [
        {"order_id": 4, "line": 1},
        {"order_id": 5, "line": 1},
    ]
    with pytest.raises(TypeError):
        signing.judge({**LINE, "row": {"order_id": 5, "line": 1}}, found)


INSERT = {"table": "orders", "op": "insert", "key": {"id": 1}, "row": {"id": 1, "customer": 3}, "ordinal": 1}
DELETE = {"table": "orders", "op": "delete", "key": {"id": 1}}


def test_a_delete_keeps_whether_it_may_miss_its_row() -> None:
    signing, found = Signing(SHOP), SignedDeltas()
    for more in ({"mayMiss": False}, {"mayMiss": True}, {"mayMiss": True}, {}, {"mayMiss": True}):
        signing.judge({**DELETE, **more}, found)
    assert [orjson.loads(item).get("mayMiss", False) for item in found.items] == [False, True, True, False, True]


@pytest.mark.parametrize(
    ("sound", "change"),
    [
        (INSERT, {"ordinal": -1}),
        (INSERT, {"ordinal": True}),
        (INSERT, {"ordinal": "1"}),
        (INSERT, {"key": {"id": 2}}),
        (INSERT, {"row": {"id": 1, "customer": "x"}}),
        (INSERT, {"row": [["id", 1], ["customer", 3]]}),
        (DELETE, {"key": {"id": None}}),
    ],
    ids=str,
)
def test_a_value_that_is_not_plainly_in_order_goes_the_general_way(
    sound: dict[str, Any], change: dict[str, Any]
) -> None:
    signing, item = Signing(SHOP), {**sound, **change}
    signing.judge(sound, SignedDeltas())
    expected = general(Signing(SHOP), item)
    assert isinstance(expected, str) or expected.misfits
    check_judged(signing, item, expected)


def test_a_known_shape_of_a_table_with_a_key_that_says_nothing_writes_that_key_too() -> None:
    signing, items = Signing(TABLES), [{"table": "partly", "op": "insert", "row": {"id": key}} for key in (1, 2)]
    signing.judge(items[0], SignedDeltas())
    check_judged(signing, items[1], general(Signing(TABLES), items[1]))


def test_names_of_one_place_are_not_taken_for_those_of_another() -> None:
    signing = Signing(SHOP)
    signing.judge({"table": "orders", "op": "delete", "key": {"id": 1}}, SignedDeltas())
    with pytest.raises(DeltaError, match="unknown field 'orders'"):
        signing.judge({"table": "delete", "op": "id", "key": {}, "orders": 1}, SignedDeltas())
    with pytest.raises(DeltaError, match="'key' must be an object"):
        signing.judge({"table": "orders", "op": "delete", "key": ["id"]}, SignedDeltas())


def test_shapes_are_forgotten_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "MOST", 2)
    signing, known = Signing(SHOP), shapes.Shapes(SHOP)
    rows: list[dict[str, Any]] = [{"total": 1}, {"customer": 1}, {"customer": 1, "total": 1}]
    items = [{"table": "orders", "op": "update", "key": {"id": 1}, "row": row} for row in rows]
    for item in items:
        known.learn(item, signing.judge_all([parse_delta(item)]).deltas[0])
    assert [known.judge(item, set(), set(), set()) is None for item in items] == [True, True, False]
