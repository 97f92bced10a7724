from __future__ import annotations

import pytest

from kainite.base.errors import DeltaError
from kainite.uow.catalogue.tables import Column
from kainite.uow.delta import Delta, Operation, Row
from kainite.uow.validation import Validator
from support.tables import INTEGER, SHOP, TEXT, catalogue, columns, table

INSERT, UPDATE, DELETE, UPSERT = Operation.INSERT, Operation.UPDATE, Operation.DELETE, Operation.UPSERT


def checked(table: str, op: Operation, key: Row, row: Row, before: Row | None = None) -> Delta:
    return Validator(SHOP).checked(Delta(table, op, key, row, before or {}))


@pytest.mark.parametrize(
    ("delta", "cause"),
    [
        (("ordres", INSERT, {}, {"id": 1}), "'ordres' is not in the target's catalogue"),
        (("orders", INSERT, {}, {"total": 1}), "key column 'id' of 'orders' is missing: its primary key is (id)"),
        (("orders", UPDATE, {"no": 1}, {"total": 1}), "key column 'id' of 'orders' is missing"),
        (("order_line", DELETE, {"order_id": 1}, {}), "key column 'line' of 'order_line' is missing"),
        (("orders", DELETE, {"id": 1, "total": 2}, {}), "'total' is no key column of 'orders'"),
        (("orders", DELETE, {"id": None}, {}), "primary key of 'orders' has a null in it"),
        (("orders", INSERT, {}, {"id": None}), "primary key of 'orders' has a null in it"),
        (("orders", UPDATE, {"id": 1}, {"totl": 1}), "'orders' has no column 'totl', which 'row' names"),
        (("orders", DELETE, {"id": 1}, {}, {"totl": 1}), "'orders' has no column 'totl', which 'before' names"),
        (("orders", INSERT, {"id": 1}, {"id": 2}), "'key' and 'row' differ in column 'id' of 'orders'"),
        (("orders", UPSERT, {"id": 1}, {"id": None}), "'key' and 'row' differ in column 'id' of 'orders'"),
        (("history", UPDATE, {"customer": 1}, {"note": "x"}), "'history' has no primary key: it takes inserts only"),
        (("history", UPSERT, {"customer": 1}, {"note": "x"}), "'history' has no primary key: it takes inserts only"),
        (("history", INSERT, {"customer": 1}, {"note": "x"}), "'history' has no primary key: leave 'key' out"),
        (("orders", INSERT, {"total": 1}, {"id": 1, "total": 2}), "key column 'id' of 'orders' is missing"),
        (("orders", INSERT, {"id": 1, "total": 1}, {"id": 1, "total": True}), "'total' is no key column of 'orders'"),
    ],
)
def test_a_delta_that_does_not_fit_the_table_is_refused(delta: tuple[str, Operation, Row, Row], cause: str) -> None:
    with pytest.raises(DeltaError) as refused:
        checked(*delta)
    assert cause in str(refused.value)


def test_a_column_that_the_target_computes_is_not_written() -> None:
    made = columns(id=INTEGER, a=TEXT) | {"b": Column("b", "text", TEXT, generated=True)}
    validator = Validator(catalogue(table("t", made)))
    with pytest.raises(DeltaError, match="'b' of 't' is computed by the target: leave it out of 'row'"):
        validator.checked(Delta("t", INSERT, {}, {"id": 1, "b": "x"}, {}))
    kept = Delta("t", UPDATE, {"id": 1}, {"a": "x"}, {"b": "old"})
    assert validator.checked(kept) is kept


class TestNormalForm:
    def test_an_inserts_key_comes_from_its_row(self) -> None:
        delta = checked("order_line", INSERT, {}, {"line": 2, "order_id": 1, "qty": 3})
        assert delta.key == {"order_id": 1, "line": 2}

    def test_an_inserts_row_decides_where_its_key_says_the_same_of_other_columns(self) -> None:
        assert checked("order_line", INSERT, {"line": 2}, {"line": 2, "order_id": 1}).key == {"order_id": 1, "line": 2}
        assert checked("history", INSERT, {"note": "x"}, {"note": "x"}).key == {}

    @pytest.mark.parametrize("op", [INSERT, UPSERT])
    def test_the_row_holds_the_key_too(self, op: Operation) -> None:
        assert checked("orders", op, {"id": 1}, {"total": 5}).row == {"id": 1, "total": 5}

    def test_an_update_writes_only_what_it_says(self) -> None:
        assert checked("orders", UPDATE, {"id": 1}, {"total": 5}).row == {"total": 5}
        assert checked("orders", UPDATE, {"id": 1}, {"id": 2}).row == {"id": 2}

    def test_the_default_schema_is_taken_off_the_name(self) -> None:
        assert checked("public.orders", DELETE, {"id": 1}, {}).table == "orders"
        assert checked("public.history", INSERT, {}, {"note": "x"}).table == "history"

    def test_one_value_spelled_twice_is_no_contradiction(self) -> None:
        assert checked("orders", INSERT, {"id": 1}, {"id": "01"}).key == {"id": 1}

    def test_what_is_normal_already_is_not_copied(self) -> None:
        delta = Delta("orders", INSERT, {"id": 1}, {"id": 1, "total": 5}, {})
        assert Validator(SHOP).checked(delta) is delta
