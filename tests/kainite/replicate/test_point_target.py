"""A PostgreSQL target of a point: its snapshot, its locks, and which of its tables are as of the point."""

from __future__ import annotations

import psycopg
import pytest

from kainite.base.errors import TargetError, TargetUnavailableError
from kainite.replicate.point_target import PostgresPointTarget, refuse_unfinished_load, unready_tables
from kainite.replicate.verify_ledger import VerifyLedger, first_row
from support.replicas import LOG, run

FENCE = "CREATE TABLE kainite_fence (log_partition text, generation bigint, micro_batch bigint)"


def test_tables_that_are_not_as_of_the_point_are_told() -> None:
    rows = [("s", "a", 5, "live"), ("s", "b", 6, "live"), ("s", "c", None, "loading"), ("s", "d", 1, "given up")]
    assert unready_tables(rows, 5) == {
        ("s", "b"): "it was loaded after the point",
        ("s", "c"): "it is being loaded by itself, and not live",
        ("s", "d"): "it was given up: kainite replicate reload",
    }


def test_a_load_of_all_tables_must_be_live() -> None:
    refuse_unfinished_load(None)
    refuse_unfinished_load("live")
    with pytest.raises(TargetError, match="is cut over, and not live"):
        refuse_unfinished_load("cut over")


def test_a_table_that_another_session_locks_is_told(postgres: str) -> None:
    run(postgres, FENCE, "CREATE TABLE item (id int)")
    target = PostgresPointTarget(postgres, LOG, ["item"])
    with target.session() as session:
        VerifyLedger(session, LOG).begin()
        assert first_row(session, "SELECT count(*) FROM kainite_verify") == (0,)
    with target.connect() as view:
        assert view.see(1) is None
    with psycopg.connect(postgres) as other, target.connect() as view:
        other.execute("LOCK TABLE item")
        with pytest.raises(TargetUnavailableError, match="locked by another session"):
            view.see(1)
