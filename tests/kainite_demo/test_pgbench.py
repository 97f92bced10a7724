"""Copies pgbench's tables as a slot's snapshot sees them."""

from __future__ import annotations

import psycopg
import pytest

from kainite.base.errors import DemoError
from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite_demo import pgbench
from kainite_demo.compare import compare
from support.pgbench_databases import ACCOUNT, BRANCH, TELLER, WHOLE, execute


def test_the_copy_holds_what_the_slots_snapshot_sees(source: SourceSlot, target: str) -> None:
    execute(source.url, BRANCH, TELLER, ACCOUNT, *WHOLE)
    with create_slot(source) as slot:
        execute(source.url, *WHOLE)
        pgbench.copy_tables(source.url, target, slot.snapshot)
    with psycopg.connect(target) as connection:
        assert connection.execute("SELECT delta FROM pgbench_history").fetchall() == [(7,)]
        assert connection.execute("SELECT abalance FROM pgbench_accounts").fetchall() == [(7,)]
    with pytest.raises(DemoError, match="pgbench_branches differs"):
        compare(source.url, target, pgbench.TABLES)


def test_a_copy_that_fails_says_why(source: SourceSlot, target: str) -> None:
    with pytest.raises(DemoError, match="copying pgbench_branches failed: ERROR"):
        pgbench.copy_tables(source.url, target, "00000000-00000000-1")
