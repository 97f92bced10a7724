from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import (
    UNCHANGED,
    DeleteMessage,
    InsertMessage,
    Relation,
    RelationColumn,
    UpdateMessage,
)
from kainite.capture.postgresql.transactions import SourceChange
from kainite_demo.dsql_changes import NetChange, net_changes, spelled

ITEM = Relation(1, "public", "item", "d", (RelationColumn("id", 23, True), RelationColumn("note", 25, False)))
LOG = Relation(2, "public", "log", "d", (RelationColumn("what", 25, False),))


def insert(key: int, note: str | None = "a") -> SourceChange:
    return SourceChange(ITEM, InsertMessage(1, (str(key), note)))


def update(key: int, note: str | None = "b", *, was: int | None = None) -> SourceChange:
    return SourceChange(ITEM, UpdateMessage(1, (str(key), note), None if was is None else (str(was), None)))


def delete(key: int) -> SourceChange:
    return SourceChange(ITEM, DeleteMessage(1, (str(key), None)))


def net(op: str, key: int, note: str | None = None) -> NetChange:
    row = {"id": key} if op == "d" else {"id": key, "note": note}
    return NetChange("public", "item", op, row if op == "d" else None, None if op == "d" else row)


@pytest.mark.parametrize(
    ("changes", "effect"),
    [
        ([insert(1)], [net("c", 1, "a")]),
        ([insert(1), update(1)], [net("c", 1, "b")]),
        ([insert(1), delete(1)], []),
        ([insert(1), delete(1), insert(1, "c")], [net("c", 1, "c")]),
        ([update(1), update(1, None)], [net("u", 1, None)]),
        ([update(1), delete(1)], [net("d", 1)]),
        ([delete(1)], [net("d", 1)]),
        ([delete(1), insert(1, "c")], [net("u", 1, "c")]),
        ([update(2, was=1)], [net("d", 1), net("c", 2, "b")]),
        ([update(2, was=1), update(1, "z", was=2)], [net("u", 1, "z")]),
        ([insert(1), update(2, was=1)], [net("c", 2, "b")]),
        ([update(1), insert(2)], [net("u", 1, "b"), net("c", 2, "a")]),
    ],
)
def test_the_net_effect_is_one_change_a_row(changes: list[SourceChange], effect: list[NetChange]) -> None:
    assert net_changes(changes) == effect


def test_rows_without_a_key_are_rows_of_their_own() -> None:
    twice = [SourceChange(LOG, InsertMessage(2, ("x",))), SourceChange(LOG, InsertMessage(2, ("x",)))]
    assert net_changes(twice) == [NetChange("public", "log", "c", None, {"what": "x"})] * 2
    with pytest.raises(SourceError, match=r"public\.log has no primary key"):
        net_changes([SourceChange(LOG, UpdateMessage(2, ("y",)))])


@given(seed=st.integers(), before=st.sets(st.integers(0, 3)))
def test_the_net_effect_brings_a_table_to_the_same_state(seed: int, before: set[int]) -> None:
    """Runs random statements, and their net effect, on two copies of a table."""
    choice = random.Random(seed)
    table: dict[int, Any] = dict.fromkeys(before, "old")
    copy, changes = dict(table), []
    for number in range(choice.randint(1, 12)):
        key, other, note = choice.randint(0, 3), choice.randint(0, 3), f"n{number}"
        if key not in table:
            changes.append(insert(key, note))
            table[key] = note
        elif choice.random() < 0.3:
            changes.append(delete(key))
            del table[key]
        elif other not in table:
            changes.append(update(other, note, was=key))
            del table[key]
            table[other] = note
        else:
            changes.append(update(key, note))
            table[key] = note
    effect = net_changes(changes)
    for change in effect:
        row = change.after or change.before or {}
        assert (row["id"] in copy) == (change.op != "c")
        copy.pop(row["id"], None)
        if change.after:
            copy[row["id"]] = row["note"]
    assert copy == table
    assert len({str((change.after or change.before or {})["id"]) for change in effect}) == len(effect)


@pytest.mark.parametrize(
    ("type_oid", "text", "value"),
    [
        (16, "t", True), (23, "-5", -5), (701, "0.5", 0.5), (701, "NaN", "NaN"), (1700, "1.50", "1.50"),
        (17, "\\x00ff", "AP8="), (1042, "abc   ", "abc"), (1082, "1970-01-02", 1), (1083, "00:00:01.5", 1_500_000),
        (1114, "1970-01-01 00:00:00.000001", 1), (1114, "1969-12-31 23:59:59", -1_000_000),
        (1184, "1970-01-01 00:00:00.5+00", 500_000), (1184, "1970-01-01 01:00:00+01", 0), (25, "x", "x"),
        (23, None, None),
    ],
)  # fmt: skip
def test_values_are_spelled_as_dsql_spells_them(type_oid: int, text: str | None, value: Any) -> None:
    assert spelled(text, type_oid) == value
    assert type(spelled(text, type_oid)) is type(value)


def test_a_value_that_postgresql_does_not_send_is_refused() -> None:
    with pytest.raises(SourceError, match="large value"):
        spelled(UNCHANGED, 25)
