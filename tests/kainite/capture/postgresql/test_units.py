"""Numbered units of transactions: numbers, ordinals and counts that no option and no restart changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
import pytest

from kainite.capture.postgresql.pgoutput import InsertMessage, Relation, RelationColumn, TruncateMessage
from kainite.capture.postgresql.records import SourceKey
from kainite.capture.postgresql.transactions import SourceChange, SourceTransaction
from kainite.capture.postgresql.units import NumberedUnits
from kainite.capture.truncate import OnTruncate

ITEM = Relation(7, "shop", "item", "d", (RelationColumn("id", 23, True),))
INSERT = SourceChange(ITEM, InsertMessage(7, ("1",)))
TRUNCATE = SourceChange(ITEM, TruncateMessage((7,)))


def no_key(relation: int) -> SourceKey:
    return SourceKey()


def units_from(number: int, *, on_truncate: OnTruncate = OnTruncate.FAIL) -> NumberedUnits:
    return NumberedUnits(number, no_key, on_truncate, lambda: 0)


def given(units: NumberedUnits, xid: int, *changes: SourceChange, passed_over: bool = False) -> list[dict[str, Any]]:
    """Returns all records of a transaction."""
    records: list[bytes] = []
    units.begin(SourceTransaction(xid, commit_lsn=xid * 16, commit_us=xid), passed_over=passed_over)
    for change in changes:
        records += units.pass_change() if passed_over else units.change(change)
    end = units.commit(end_lsn=xid * 16 + 8)
    return [orjson.loads(record) for record in (*records, *(() if end is None else (end.end,)))]


def numbers(records: Iterable[dict[str, Any]]) -> set[int]:
    return {record["number"] for record in records}


def test_a_unit_is_its_changes_and_an_end_that_counts_them() -> None:
    first, second, end = given(units_from(16), 754, INSERT, INSERT)
    assert (first["ordinal"], second["ordinal"]) == (0, 1)
    assert end == {"uow": "pg-754-0/2F20", "number": 17, "end": True, "count": 2, "time": 754000}


def test_transactions_without_changes_take_no_number() -> None:
    units = units_from(0)
    assert given(units, 1) == []
    assert numbers(given(units, 2, INSERT)) == {1}
    assert numbers(given(units, 3, INSERT)) == {2}


def test_a_unit_has_begun_with_its_first_change_and_until_its_end() -> None:
    units = units_from(0)
    units.begin(SourceTransaction(1, 16, 1))
    assert not units.begun
    list(units.change(INSERT))
    assert units.begun
    assert units.commit(24) is not None
    assert not units.begun


@pytest.mark.parametrize("changes", [(TRUNCATE,), (TRUNCATE, INSERT), (INSERT, TRUNCATE, INSERT)])
def test_numbers_ordinals_and_ends_do_not_depend_on_what_truncate_does(changes: tuple[SourceChange, ...]) -> None:
    failing, skipping = (units_from(0, on_truncate=each) for each in (OnTruncate.FAIL, OnTruncate.SKIP))
    one, other = (
        [record for record in (*given(units, 1, *changes), *given(units, 2, INSERT)) if "refused" not in record]
        for units in (failing, skipping)
    )
    assert one == other
    assert one[-1]["number"] == 2
    assert next(record["count"] for record in one if "end" in record) == changes.count(INSERT)


def test_a_truncate_is_refused_unless_it_is_skipped() -> None:
    assert [record.get("refused") for record in given(units_from(0), 1, TRUNCATE)] == ["TRUNCATE names no rows", None]


def test_a_truncate_that_is_applied_has_a_record_and_counts() -> None:
    insert, truncate, end = given(units_from(0, on_truncate=OnTruncate.APPLY), 1, INSERT, TRUNCATE)
    assert (truncate["operation"], truncate["ordinal"], truncate["key"], truncate["new"]) == ("truncate", 1, {}, {})
    assert insert["ordinal"] == 0
    assert end["count"] == 2


def test_a_transaction_that_is_passed_over_keeps_its_number_and_fails_its_unit() -> None:
    units = units_from(3)
    refused, end = given(units, 1, INSERT, INSERT, INSERT, passed_over=True)
    assert refused["refused"] == "the transaction was passed over (--skip-transaction)"
    assert (end["number"], end["count"]) == (4, 0)
    assert numbers(given(units, 2, INSERT)) == {5}


def test_a_transaction_without_changes_takes_no_number_where_it_is_passed_over_either() -> None:
    units = units_from(3)
    assert given(units, 1, passed_over=True) == []
    assert units.number == 3


def test_a_heartbeat_takes_a_number_and_has_no_deltas() -> None:
    units = units_from(4)
    units.begin(SourceTransaction(7, commit_lsn=112, commit_us=7))
    units.heartbeat()
    unit = units.commit(end_lsn=120)

    assert unit is not None
    assert orjson.loads(unit.end) == {"uow": "pg-7-0/70", "number": 5, "end": True, "count": 0, "time": 7000}
    assert numbers(given(units, 8, INSERT)) == {6}
