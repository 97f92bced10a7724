"""Tables that differ in one row fail the demo, on a real server."""

from __future__ import annotations

import pytest

from kainite.base.errors import DemoError
from kainite.capture.postgresql.replication import SourceSlot
from kainite_demo import pgbench
from kainite_demo.compare import compare
from support.pgbench_databases import BRANCH, execute


def test_equal_tables_are_counted(source: SourceSlot, target: str) -> None:
    for url in (source.url, target):
        execute(url, BRANCH, *["INSERT INTO pgbench_history (bid, delta) VALUES (1, 5)"] * 2)
    assert compare(source.url, target, pgbench.TABLES) == 3


def test_rows_of_a_table_without_a_key_may_stand_in_any_order(source: SourceSlot, target: str) -> None:
    rows = [f"INSERT INTO pgbench_history (delta, filler) VALUES ({n}, 'a\tb\\\\')" for n in (1, 2, 2, 3)]
    execute(source.url, *rows)
    execute(target, *reversed(rows))
    assert compare(source.url, target, ["pgbench_history"]) == 4


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("UPDATE pgbench_accounts SET abalance = 1 WHERE aid = 70000", r"pgbench_accounts differs: .*'70000'.*'70000'"),
        ("DELETE FROM pgbench_accounts WHERE aid = 90000", r"the source has .*'90000'.*the target no more rows"),
        ("INSERT INTO pgbench_accounts VALUES (90001, 1, 0)", "the source has no more rows, the target .*'90001'"),
        ("UPDATE pgbench_accounts SET filler = NULL WHERE aid = 1", r"the source has \['0', '1', '1', 'x"),
    ],
)
def test_one_row_that_differs_among_many_is_shown(
    source: SourceSlot, target: str, statement: str, complaint: str
) -> None:
    for url in (source.url, target):
        execute(url, BRANCH, "INSERT INTO pgbench_accounts SELECT n, 1, 0, 'x' FROM generate_series(1, 90000) AS a (n)")
    execute(target, statement)
    with pytest.raises(DemoError, match=complaint):
        compare(source.url, target, ["pgbench_accounts"])


def test_a_table_that_cannot_be_read_is_reported(source: SourceSlot, target: str) -> None:
    execute(target, "DROP TABLE pgbench_history")
    with pytest.raises(DemoError, match=r"differs|reading for the comparison failed"):
        compare(source.url, target, ["pgbench_history"])
