"""Deltas and ends as a child emits them: what is read, what is refused, and why."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.base.errors import DeltaError
from kainite.uow.delta import (
    MAX_UOW_LENGTH,
    Delta,
    Operation,
    UnitEnd,
    UnitKind,
    Values,
    commit_time,
    is_end,
    parse_delta,
    parse_end,
    uow_of,
)
from kainite.uow.identity import identity_of

DELTA: dict[str, Any] = {"uow": "T", "table": "t", "op": "insert", "key": {"id": 1}, "row": {"id": 1, "v": "x"}}
END: dict[str, Any] = {"uow": "T", "end": True, "count": 3}

READ = [
    (DELTA, Delta("t", Operation.INSERT, {"id": 1}, {"id": 1, "v": "x"}, {})),
    (
        {"uow": "T", "table": "t", "op": "update", "key": {"id": 1}, "row": {"v": 2}, "before": {"v": 1}, "ordinal": 0},
        Delta("t", Operation.UPDATE, {"id": 1}, {"v": 2}, {"v": 1}, 0),
    ),
    (
        {"uow": "T", "table": "t", "op": "update", "row": {"id": 1}, "values": "dsql"},
        Delta("t", Operation.UPDATE, {}, {"id": 1}, {}, values=Values.DSQL),
    ),
    ({"uow": "T", "table": "t", "op": "delete", "key": {"id": 1}}, Delta("t", Operation.DELETE, {"id": 1}, {}, {})),
    (
        {"uow": "T", "table": "t", "op": "delete", "key": {"id": 1}, "mayMiss": True},
        Delta("t", Operation.DELETE, {"id": 1}, {}, {}, may_miss=True),
    ),
]


@pytest.mark.parametrize(("item", "expected"), READ)
def test_a_delta_is_read_and_written_back(item: dict[str, Any], expected: Delta) -> None:
    assert parse_delta(item) == expected
    assert expected.to_json() | {"uow": "T"} == item


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"table": ""}, "'table' must be a non-empty string"),
        ({"table": 7}, "'table' must be a non-empty string"),
        ({"op": "merge"}, "'op' must be one of insert, update, delete, upsert, truncate, not 'merge'"),
        ({"op": "delete"}, "a delete has no 'row'"),
        ({"op": "update", "row": {}}, "'row' is missing: update needs the columns to write"),
        ({"op": "delete", "row": {}, "key": {}}, "'key' is missing: delete needs the row's primary key"),
        ({"values": "mine"}, "'values' must be one of dsql, dsql-sparse, not 'mine'"),
        ({"mayMiss": True}, "'mayMiss' is for deletes, not for an insert"),
        ({"mayMiss": 1}, "'mayMiss' must be true or false, not 1"),
        ({"row": []}, "'row' must be an object"),
        ({"ordinal": -1}, "'ordinal' must be a whole number from 0, not -1"),
        ({"ordinal": True}, "'ordinal' must be a whole number from 0"),
        ({"ordinal": 2**63}, "'ordinal' must be at most 9223372036854775807"),
        ({"tabel": "t"}, "unknown field 'tabel' in a delta"),
        ({"refused": {"cause": "TRUNCATE names\nno rows", "place": "s:1"}}, "^TRUNCATE names no rows$"),
        ({"refused": {"cause": " "}}, "'refused' must be an object with 'cause'"),
        ({"refused": "TRUNCATE"}, "'refused' must be an object with 'cause'"),
    ],
)
def test_a_faulty_delta_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DeltaError, match=message):
        parse_delta(DELTA | changes)


@pytest.mark.parametrize("told", [17, "17"])
def test_a_commit_time_is_read_from_a_number_or_a_text_and_is_no_part_of_the_delta(told: Any) -> None:
    assert commit_time(DELTA | {"time": told}) == 17
    assert commit_time(DELTA) is None
    assert identity_of(parse_delta(DELTA | {"time": told})) == identity_of(parse_delta(DELTA))


@pytest.mark.parametrize("told", [-1, 1.5, True, "", "1e3", "-1", "x", 2**63, "9" * 20, [1]])
def test_a_faulty_commit_time_is_refused(told: Any) -> None:
    with pytest.raises(DeltaError, match="'time' must be a whole number of nanoseconds"):
        commit_time(DELTA | {"time": told})


def test_a_truncate_names_its_table_alone() -> None:
    delta = parse_delta({"uow": "T-1", "table": "a", "op": "truncate", "ordinal": 3})
    assert delta.to_json() == {"table": "a", "op": "truncate", "ordinal": 3}
    for more in ({"key": {"id": 1}}, {"row": {"id": 1}}, {"before": {"id": 1}}, {"mayMiss": True}):
        with pytest.raises(DeltaError, match="a truncate has its table alone"):
            parse_delta({"uow": "T-1", "table": "a", "op": "truncate", **more})


def test_an_end_is_read() -> None:
    assert parse_end(END) == UnitEnd(3)
    assert parse_end(END | {"number": 17, "kind": "reversal"}) == UnitEnd(3, 17, UnitKind.REVERSAL)
    assert is_end(END)
    assert not is_end(DELTA)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"end": False}, "'end' must be true"),
        ({"count": None}, "'count'"),
        ({"count": -1}, "'count' must be a whole number from 0, not -1"),
        ({"number": "7"}, "'number' must be a whole number from 0"),
        ({"number": 2**64 - 1}, "'number' must be at most 9223372036854775807, not 18446744073709551615"),
        ({"kind": "odd"}, "'kind' must be one of normal, correction, reversal, not 'odd'"),
        ({"cuont": 1}, "unknown field 'cuont' in an end"),
    ],
)
def test_a_faulty_end_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DeltaError, match=message):
        parse_end(END | changes)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ([], "a delta is a JSON object, not"),
        (None, "a delta is a JSON object, not"),
        ({}, "'uow' must be a string of 1 to"),
        ({"uow": ""}, "'uow' must be a string of 1 to"),
        ({"uow": 7}, "'uow' must be a string of 1 to"),
        ({"uow": "x" * (MAX_UOW_LENGTH + 1)}, "'uow' must be a string of 1 to"),
    ],
)
def test_an_object_without_a_units_name_is_refused(item: Any, message: str) -> None:
    with pytest.raises(DeltaError, match=message):
        uow_of(item)
