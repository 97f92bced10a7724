"""Which rows can be repaired, their deltas as of a snapshot of a real source, and what is left out with a row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from kainite.base.errors import LogRequestError, SourceError
from kainite.capture.postgresql.consistent_snapshot import consistent_snapshot
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.ends_compared import tables_to_compare
from kainite.replicate.known_rows import Explanation
from kainite.replicate.repaired_rows import MOST_ROWS, read_deltas, to_repair, without
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.verify_report import RowReport, TableReport, VerifyReport
from kainite.uow.delta import Delta, Operation
from kainite.uow.signature import Signatures
from support.replicas import LOG, run, tables_of
from support.waiting import eventually

FAMILY = """
    CREATE TABLE parent (id int PRIMARY KEY);
    CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent);
    CREATE TABLE grandchild (id int PRIMARY KEY, child int REFERENCES child);
"""


def row(table: str = "public.item", why: Explanation = Explanation.NONE, **key: str) -> RowReport:
    return RowReport(table, key, RowDifference.CHANGED, why, 1, (), (), ())


def report(different: int, *rows: RowReport) -> VerifyReport:
    return VerifyReport("", "0/1", (TableReport("public.item", 9, 9, changed=different),), rows)


def deltas(source: SourceSlot, target: str, rows: Sequence[RowReport], *meanwhile: str) -> tuple[Delta, ...]:
    """Returns the deltas of rows as of now, read behind what ``meanwhile`` does to the source."""
    tables = {table.name: table for table in tables_to_compare(ReplicaEnds(source, target, LOG), ())[0]}
    with consistent_snapshot(source.url, lambda _: []) as point:
        run(source.url, *meanwhile)
        return read_deltas(source.url, point.snapshot, tables, rows)


def test_rows_that_a_unit_explains_are_not_repaired() -> None:
    bare = row(id="1")
    explained = (row(why=Explanation.KNOWN, id="2"), row(why=Explanation.UNSURE, id="3"))
    assert to_repair(report(1, explained[0], bare, explained[1])) == (bare,)
    assert to_repair(report(0)) == ()


def test_rows_of_which_not_all_are_known_are_refused() -> None:
    with pytest.raises(LogRequestError, match=f"2 rows differ, and at most {MOST_ROWS:,} are repaired"):
        to_repair(report(2, row(id="1")))


def test_rows_without_a_key_are_refused_by_their_tables() -> None:
    rows = (row("public.note"), row(id="1"), row("public.journal"), row("public.note"))
    with pytest.raises(LogRequestError, match=r"^public\.journal, public\.note: nothing tells the rows"):
        to_repair(report(4, *rows))
    known = row("public.note", Explanation.KNOWN)
    assert to_repair(report(1, row(id="1"), known)) == (row(id="1"),)


def test_deltas_have_the_rows_as_the_snapshot_has_them(source: SourceSlot, postgres: str) -> None:
    both = """
        CREATE TABLE kinds (id int8 PRIMARY KEY, yes bool, n numeric, at timestamptz, text text,
                            up text GENERATED ALWAYS AS (upper(text)) STORED)"""
    run(source.url, both, "INSERT INTO kinds VALUES (1, true, 1.50, '2026-01-01 12:00Z', 'a')",
        "INSERT INTO kinds VALUES (2, false)")  # fmt: skip
    run(postgres, both)
    found = deltas(
        source, postgres, [row("public.kinds", id=key) for key in ("1", "3", "2")],
        "UPDATE kinds SET text = 'newer'", "INSERT INTO kinds VALUES (3)", "DELETE FROM kinds WHERE id = 2",
    )  # fmt: skip
    first: dict[str, Any] = {"id": 1, "yes": True, "n": "1.50", "at": "2026-01-01 12:00:00+00", "text": "a"}
    second = {**dict.fromkeys(first), "id": 2, "yes": False}
    assert found == (
        Delta("public.kinds", Operation.DELETE, {"id": "3"}, {}, {}, 0, may_miss=True),
        Delta("public.kinds", Operation.UPSERT, {"id": 1}, first, {}, 1),
        Delta("public.kinds", Operation.UPSERT, {"id": 2}, second, {}, 2),
    )


def test_rows_are_found_in_each_part_by_all_columns_of_their_key(source: SourceSlot, postgres: str) -> None:
    both = ('CREATE TABLE part (a int, "b%""" text, PRIMARY KEY (a, "b%""")) PARTITION BY LIST (a)',
            "CREATE TABLE one PARTITION OF part FOR VALUES IN (1)",
            "CREATE TABLE two PARTITION OF part FOR VALUES IN (2)")  # fmt: skip
    for url in (source.url, postgres):
        run(url, *both)
    run(source.url, "ALTER PUBLICATION changes SET (publish_via_partition_root)",
        "INSERT INTO part VALUES (1, 'x'), (2, 'x')")  # fmt: skip
    keys = [{"a": a, 'b%"': b} for a, b in (("1", "x"), ("2", "x"), ("2", "y"))]
    found = deltas(source, postgres, [row("public.part", Explanation.NONE, **key) for key in keys])
    assert [(delta.op.value, delta.key) for delta in found] == [
        ("delete", {"a": "2", 'b%"': "y"}), ("upsert", {"a": 1, 'b%"': "x"}), ("upsert", {"a": 2, 'b%"': "x"}),
    ]  # fmt: skip


def test_a_row_that_is_not_published_is_none_of_the_targets(source: SourceSlot, postgres: str) -> None:
    run(source.url, "DROP PUBLICATION changes", "INSERT INTO item VALUES (1, 'shown'), (2, 'hidden')",
        "CREATE PUBLICATION changes FOR TABLE item (id, name) WHERE (id < 2)")  # fmt: skip
    run(postgres, "CREATE TABLE item (id int PRIMARY KEY, name text, price numeric)")
    hidden, shown = deltas(source, postgres, [row(id="1"), row(id="2")])
    assert (hidden.op, hidden.key, hidden.may_miss) == (Operation.DELETE, {"id": "2"}, True)
    assert (shown.op, shown.row) == (Operation.UPSERT, {"id": 1, "name": "shown"})


def test_a_snapshot_that_is_gone_is_told(source: SourceSlot) -> None:
    with consistent_snapshot(source.url, lambda _: []) as point:
        pass
    told: list[str] = []

    def is_gone() -> bool:
        try:
            read_deltas(source.url, point.snapshot, {}, ())
        except SourceError as error:
            told.append(str(error))
        return bool(told)

    eventually(is_gone)  # the server may keep it for a moment behind the session's end
    assert re.match(r"the source: .*snapshot", told[0])


def test_a_row_is_left_out_with_all_that_depend_on_it_however_far(postgres: str) -> None:
    run(postgres, FAMILY)
    signatures = Signatures(tables_of(postgres))
    one, two = (
        (upsert("grandchild", number, child=number), upsert("child", number, parent=number), upsert("parent", number))
        for number in (1, 2)
    )
    both = tuple(delta for pair in zip(one, two, strict=True) for delta in pair)
    assert without(both, signatures, ()) == (both, ())
    assert without(both, signatures, written(signatures, one[2])) == (two, one)
    assert without(both, signatures, written(signatures, two[1])) == ((*one, two[2]), two[:2])
    assert without(both, signatures, written(signatures, upsert("parent", 3))) == (both, ())
    assert without((), signatures, {1}) == ((), ())


def test_a_child_is_left_out_with_a_parent_that_was_met_but_is_not_repaired(postgres: str) -> None:
    run(postgres, FAMILY)
    signatures = Signatures(tables_of(postgres))
    child, other = upsert("child", 1, parent=7), upsert("child", 2, parent=8)
    assert without((child, other), signatures, written(signatures, upsert("parent", 7))) == ((other,), (child,))


def upsert(table: str, number: int, **more: int) -> Delta:
    return Delta(table, Operation.UPSERT, {"id": number}, {"id": number, **more}, {})


def written(signatures: Signatures, delta: Delta) -> frozenset[int]:
    return signatures.of([delta])[0]
