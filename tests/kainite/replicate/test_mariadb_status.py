"""What the status tells of a load in MariaDB that is under way."""

from __future__ import annotations

from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.replicate.ledger import CheckStep, CopyStep, LoadState, LoadStep
from kainite.replicate.mariadb_ledger import CHECK_STAGE
from kainite.replicate.mariadb_load_ledger import MariadbLoadLedger
from kainite.replicate.mariadb_status import mariadb_status
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.targets.mariadb.rows import rows_of
from kainite_spark.targets.mariadb import ledger as of_the_apply_job

LOG = "log/0"


def test_ranges_and_what_was_refused_are_told(mariadb: str) -> None:
    with mariadb_session(mariadb) as connection:
        connection.query(of_the_apply_job.CREATE[1])
        made = MariadbLoadLedger(connection, LOG)
        made.create()
        made.begin()
        assert mariadb_status(connection, LOG).state is LoadState.LOADING
        steps = [LoadStep(number, 1, "shop", "item", CopyStep((), "")) for number in (1, 2)]
        steps += [LoadStep(3, CHECK_STAGE, "shop", "item", CheckStep())]
        made.plan(ConsistentPoint(16, "s", SourceIdentity("7", 1, "shop")), [], steps)
        rows_of(connection, "UPDATE kainite_load_step SET done_at = NOW(), copied_rows = 5, copied_bytes = 70"
                            " WHERE step = 1")  # fmt: skip
        made.failed(3, "no parent")
        told = mariadb_status(connection, LOG)
    [table] = told.tables
    assert (table.table, table.state.value, table.ranges, table.ranges_done) == ("shop.item", "loading", 2, 1)
    assert (told.rows, told.bytes, told.statements, told.statements_done) == (5, 70, 1, 0)
    assert (told.position, told.consistent, told.refused) == ("0/10", False, ("shop.item: no parent",))
