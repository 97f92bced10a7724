from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import DeltaError
from kainite.uow.catalogue.tables import Catalogue, Column, TypeFamily, UniqueKey
from kainite.uow.delta import Delta, Operation
from kainite.uow.signature import Signatures
from kainite.uow.touched.key import ROW
from support.tables import INTEGER, NUMERIC, SHOP, TEXT, catalogue, columns, foreign_key, table

Values = Mapping[str, Any]


def insert(name: str, /, **row: Any) -> Delta:
    return Delta(name, Operation.INSERT, {}, row, {})


def upsert(name: str, key: Values, /, **row: Any) -> Delta:
    return Delta(name, Operation.UPSERT, key, {**key, **row}, {})


def update(name: str, key: Values, before: Values | None = None, /, **row: Any) -> Delta:
    return Delta(name, Operation.UPDATE, key, row, before or {})


def delete(name: str, key: Values, /, **before: Any) -> Delta:
    return Delta(name, Operation.DELETE, key, {}, before)


def conflict(one: Delta, other: Delta, tables: Catalogue | None = SHOP) -> bool:
    signatures = Signatures(tables)
    written, read = signatures.of([one])
    others_written, others_read = signatures.of([other])
    return bool(written & (others_written | others_read) or others_written & read)


ANNA = {"email": "anna@x", "country": "SI", "name": "Anna"}

CONFLICTING = {
    "two changes of one row": (update("customer", {"id": 1}, name="A"), update("customer", {"id": "01"}, name="B")),
    "insert and delete of one row": (insert("customer", id=1, **ANNA), delete("customer", {"id": 1})),
    "composite key in another order": (
        update("order_line", {"order_id": 1, "line": 2}, qty=3),
        delete("order_line", {"line": "2", "order_id": "1"}),
    ),
    "old key of a row that changes its key": (
        update("customer", {"id": 1}, id=2),
        update("customer", {"id": 1}, name="B"),
    ),
    "new key of a row that changes its key": (
        update("customer", {"id": 1}, id=2),
        update("customer", {"id": 2}, name="B"),
    ),
    "a unique value goes from one row to another": (
        update("customer", {"id": 1}, {"email": "anna@x"}, email="old@x"),
        update("customer", {"id": 2}, {"email": "b@x"}, email="anna@x"),
    ),
    "a unique value is freed by a delete": (
        delete("customer", {"id": 1}, email="anna@x"),
        insert("customer", id=2, **ANNA),
    ),
    "two rows want one unique value": (upsert("customer", {"id": 1}, **ANNA), insert("customer", id=2, **ANNA)),
    "an upsert frees a unique value": (
        Delta("customer", Operation.UPSERT, {"id": 1}, {"id": 1, "email": "new@x"}, {"email": "anna@x"}),
        insert("customer", id=2, **ANNA),
    ),
    "parent and child are inserted": (insert("country", code="SI", name="x"), insert("customer", id=1, **ANNA)),
    "parent is upserted, child inserted": (
        upsert("country", {"code": "SI"}, name="x"),
        insert("customer", id=1, **ANNA),
    ),
    "child moves to a new parent": (
        insert("country", code="SI"),
        update("customer", {"id": 1}, {"country": "IT"}, country="SI"),
    ),
    "child moves away, then its old parent goes": (
        update("customer", {"id": 1}, {"country": "IT"}, country="SI"),
        delete("country", {"code": "IT"}),
    ),
    "child goes, then its parent": (delete("customer", {"id": 1}, country="SI"), delete("country", {"code": "SI"})),
    "a row of a table without key and its parent": (insert("history", customer=1), insert("customer", id=1, email="e")),
    "parent named by a unique key": (insert("shipment", id=1, notify="anna@x"), insert("customer", id=7, **ANNA)),
    "parent gives up the unique key that names it": (
        insert("shipment", id=1, notify="anna@x"),
        update("customer", {"id": 7}, {"email": "anna@x"}, email="new@x"),
    ),
    "composite foreign key, columns in another order": (
        insert("shipment", id=1, order_id=5, line=2),
        insert("order_line", line=2, order_id=5, qty=1),
    ),
    "row and its parent in the same table": (insert("orders", id=1), insert("orders", id=2, parent_order=1)),
    "parent changes its key": (update("customer", {"id": 1}, id=2), insert("orders", id=9, customer=2)),
    "table called with its default schema": (
        update("public.customer", {"id": 1}, name="x"),
        delete("customer", {"id": 1}),
    ),
}


@pytest.mark.parametrize("case", CONFLICTING)
def test_these_conflict(case: str) -> None:
    one, other = CONFLICTING[case]
    assert conflict(one, other)
    assert conflict(other, one)


INDEPENDENT = {
    "two rows": (insert("customer", id=1, email="a@x"), insert("customer", id=2, email="b@x")),
    "one key in two tables": (insert("customer", id=1, email="a@x"), insert("orders", id=1)),
    "two children of one parent": (insert("orders", id=1, customer=7), insert("orders", id=2, customer=7)),
    "parent's other columns change beside an insert of a child": (
        update("customer", {"id": 7}, name="new"),
        insert("orders", id=1, customer=7),
    ),
    "parent's whole row is sent, its keys unchanged": (
        update("customer", {"id": 7}, {"email": "anna@x"}, **ANNA, id=7),
        insert("shipment", id=1, notify="anna@x"),
    ),
    "a unique value stays as it is": (
        update("customer", {"id": 1}, {"email": "a@x"}, email="a@x", name="n"),
        update("customer", {"id": 2}, {"email": "b@x"}, email="b@x", name="m"),
    ),
    "child's other columns change, its parent goes": (
        update("customer", {"id": 1}, {"country": "SI"}, name="n", country="SI"),
        delete("country", {"code": "SI"}),
    ),
    "NULL in a unique key": (insert("customer", id=1, email=None), insert("customer", id=2, email=None)),
    "NULL in a foreign key": (insert("customer", id=1, country=None), insert("country", code="")),
    "part of a composite foreign key is NULL": (
        insert("shipment", id=1, order_id=5, line=None),
        insert("order_line", order_id=5, line=2),
    ),
    "rows without a key": (insert("history", customer=1, note="x"), insert("history", customer=1, note="x")),
}


@pytest.mark.parametrize("case", INDEPENDENT)
def test_these_do_not_conflict(case: str) -> None:
    one, other = INDEPENDENT[case]
    assert not conflict(one, other)
    assert not conflict(other, one)


class TestKeysThatDeltasDoNotTell:
    def test_opaque_columns_are_left_out_of_a_key(self) -> None:
        tables = catalogue(table("reading", columns(device=INTEGER, at=TypeFamily.OPAQUE), ("device", "at")))
        assert conflict(insert("reading", device=1, at="a"), insert("reading", device=1, at="b"), tables)
        assert not conflict(insert("reading", device=1, at="a"), insert("reading", device=2, at="a"), tables)

    def test_an_opaque_value_that_changes_is_written_although_it_is_spelled_alike(self) -> None:
        slot = UniqueKey("slot", ("room", "at"))
        tables = catalogue(table("booking", columns(id=INTEGER, room=INTEGER, at=TypeFamily.OPAQUE), ("id",), slot))
        moved = update("booking", {"id": 1}, {"room": 5, "at": "a"}, room=5, at="b")
        assert conflict(moved, insert("booking", id=2, room=5, at="a"), tables)

    @pytest.mark.parametrize("changed", [{"at": "x"}, {"id": 1, "at": "y"}])
    def test_a_partial_index_is_written_by_every_delta_of_its_table(self, changed: dict[str, Any]) -> None:
        tables = catalogue(table("t", columns(id=INTEGER, at=TEXT), ("id",), UniqueKey("one_active", ())))
        assert conflict(update("t", {"id": 1}, **changed), insert("t", id=2), tables)

    def test_a_unique_key_that_the_target_computes_is_written_by_every_delta(self) -> None:
        lower = {"lower": Column("lower", "text", TEXT, generated=True)}
        key = UniqueKey("lower_email", ("lower",))
        tables = catalogue(table("t", columns(id=INTEGER, email=TEXT) | lower, ("id",), key))
        assert conflict(insert("t", id=1, email="A"), insert("t", id=2, email="a"), tables)

    def test_nulls_exclude_each_other_where_the_target_says_so(self) -> None:
        tables = catalogue(
            table("t", columns(id=INTEGER, a=TEXT), ("id",), UniqueKey("k", ("a",), nulls_distinct=False))
        )
        assert conflict(insert("t", id=1, a=None), insert("t", id=2, a=None), tables)
        assert not conflict(insert("t", id=1, a=None), insert("t", id=2, a="x"), tables)

    def test_foreign_key_between_number_types(self) -> None:
        tables = catalogue(
            table("p", columns(id=INTEGER)),
            table("c", columns(id=INTEGER, p=NUMERIC), ("id",), foreign_key(("p",), "p", ("id",))),
        )
        assert conflict(insert("p", id=5), insert("c", id=1, p="5.00"), tables)

    def test_foreign_key_to_a_table_outside_the_catalogue_is_no_conflict(self) -> None:
        tables = catalogue(table("c", columns(id=INTEGER, p=INTEGER), ("id",), foreign_key(("p",), "other.p", ("id",))))
        assert not conflict(insert("c", id=1, p=5), insert("c", id=2, p=5), tables)


def test_what_each_operation_writes_and_reads() -> None:
    signatures = Signatures(SHOP)
    row, email = 1, 1
    existence_by_id, existence_by_email = 1, 1
    written, read = signatures.of([insert("customer", id=1, **ANNA)])
    assert (len(written), len(read)) == (row + email + existence_by_id + existence_by_email, 1)
    written, read = signatures.of([update("customer", {"id": 1}, name="B")])
    assert (len(written), len(read)) == (row, 0)


def test_signatures_are_unsigned_64_bit_and_the_same_in_every_process() -> None:
    written, read = Signatures(SHOP).of([insert("order_line", order_id=1, line=2, qty=3)])
    # row and existence of the line, existence of the order: kainite.uow.scheme.RULES is raised when they change
    assert {f"{value:016x}" for value in written} == {"25b65757ae2f75e2", "8315c1d1e080ac2f"}
    assert {f"{value:016x}" for value in read} == {"1f1b5e190c5599e3"}


def rows(tables: Catalogue | None, *deltas: Delta) -> set[int]:
    return {signature for signature in Signatures(tables).of(deltas)[0] if signature & ROW}


def test_a_row_alone_has_a_signature_that_says_so() -> None:
    assert len(rows(SHOP, insert("customer", id=1, **ANNA))) == 1
    assert len(rows(SHOP, update("customer", {"id": 1}, id=2))) == 2
    assert rows(SHOP, insert("order_line", order_id=1, line=2, qty=3)) & rows(
        SHOP, delete("order_line", {"line": "2", "order_id": "1"})
    )
    assert len(rows(None, update("t", {"a": 1}, a=2))) == 2
    assert rows(None, insert("t", a=1)) == set()


def test_what_several_rows_may_have_says_so_too() -> None:
    opaque = table("t", columns(a=TypeFamily.OPAQUE, b=INTEGER), ("a", "b"))
    assert rows(catalogue(opaque), update("t", {"a": "now", "b": 1}, b=2)) == set()
    whole = table("whole", columns(id=INTEGER), ("id",))
    part = replace(table("part", columns(id=INTEGER), ("id",)), part_of="whole")
    assert rows(catalogue(whole, part), insert("whole", id=1), insert("part", id=2)) == set()
    assert len(rows(catalogue(whole), insert("whole", id=1))) == 1


def test_a_value_of_the_wrong_type_names_column_and_table() -> None:
    with pytest.raises(DeltaError, match="column 'customer' of 'orders': 'seven' is no whole number"):
        Signatures(SHOP).of([insert("orders", id=1, customer="seven")])


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(DeltaError, match="'ordres' is not in the target's catalogue"):
        Signatures(SHOP).of([insert("ordres", id=1)])


class TestWithoutACatalogue:
    def test_table_and_key_are_the_signature(self) -> None:
        assert conflict(update("t", {"a": 1, "b": 2}, c=3), delete("t", {"b": "2", "a": "1"}), None)
        assert not conflict(delete("t", {"a": 1}), delete("u", {"a": 1}), None)
        assert not conflict(delete("t", {"a": 1}), delete("t", {"a": 2}), None)

    def test_a_changed_key_writes_both(self) -> None:
        assert conflict(update("t", {"a": 1}, a=2), delete("t", {"a": 2}), None)
        assert conflict(update("t", {"a": 1}, a=2), delete("t", {"a": 1}), None)

    def test_a_delta_without_a_key_may_touch_any_row_of_its_table(self) -> None:
        assert conflict(insert("t", a=1), delete("t", {"a": 1}), None)
        assert conflict(update("t", {"a": 1}, b=2), insert("t", a=1), None)
        assert conflict(insert("t", a=1), insert("t", a=1), None)
        assert not conflict(insert("t", a=1), delete("u", {"a": 1}), None)


@st.composite
def spellings(draw: st.DrawFn, value: int) -> Any:
    """Generates one integer as different sources write it."""
    return draw(st.sampled_from([value, str(value), f"{value:+05d}", float(value)]))


@st.composite
def changes_of(draw: st.DrawFn, order: int, line: int) -> Delta:
    """Generates any delta on one order line."""
    key = {"order_id": draw(spellings(order)), "line": draw(spellings(line))}
    qty = draw(st.integers(0, 9))
    made = st.sampled_from(
        [
            insert("order_line", **key, qty=qty),
            upsert("order_line", key, qty=qty),
            update("order_line", key, qty=qty),
            delete("order_line", key, qty=qty),
        ]
    )
    return draw(made)


_NUMBERS = st.integers(-3, 3)


@given(st.data(), _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS)
def test_deltas_share_a_written_signature_exactly_when_they_touch_the_same_row(
    data: st.DataObject, order: int, line: int, other_order: int, other_line: int
) -> None:
    signatures = Signatures(SHOP)
    one, _ = signatures.of([data.draw(changes_of(order, line))])
    other, _ = signatures.of([data.draw(changes_of(other_order, other_line))])
    assert bool(one & other) == ((order, line) == (other_order, other_line))
