"""A MariaDB target of a point: each session looks for itself, and tables are held behind that."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.capture.mysql import snapshot_session
from kainite.replicate import mariadb_ledger
from kainite.replicate.mariadb_point_target import MariadbPointTarget
from kainite.replicate.stop_ledger import StopState, encoded
from kainite.replicate.verify_ledger import VerifyLedger
from support.mariadb_source import execute, session
from support.replicas import LOG
from support.verify_sessions import run, session_of, target_of

STOPPED = "UPDATE kainite_verify SET state = 'stopped', generation = 4, micro_batch = 7, units = %s"


@pytest.fixture
def target(request: pytest.FixtureRequest) -> MariadbPointTarget:
    url = target_of("mariadb", request)
    execute(url, "CREATE TABLE item (id int PRIMARY KEY, v int)", "INSERT INTO item VALUES (1, 1)")
    return MariadbPointTarget(url, LOG, ["item"], 2)


def stopped(connection: Any) -> VerifyLedger:
    """Plays an apply job that stands at a point."""
    ledger = VerifyLedger(connection, LOG)
    ledger.begin()
    ledger.ask()
    run(connection, STOPPED, encoded(()))
    run(connection, "INSERT INTO kainite_fence VALUES (%s, 4, 7)", LOG)
    return ledger


def test_each_session_must_see_that_the_apply_job_stands(target: MariadbPointTarget) -> None:
    with session_of(target.url) as connection, target.connect() as view:
        ledger = stopped(connection)
        assert ledger.awaits(StopState.STOPPED, 0.0, lambda: None)
        assert view.see(ledger.request) == ("", ())
        run(connection, "UPDATE item SET v = 2")
        for one in target.sessions:
            assert one.found("SELECT v FROM item") == [("1",)]
        assert view.unready(5) == {}
        run(connection, "UPDATE kainite_fence SET micro_batch = 8")
        assert view.see(ledger.request) is None


def test_tables_of_the_ledger_are_read_in_the_snapshot(target: MariadbPointTarget) -> None:
    with session_of(target.url) as connection:
        for statement in mariadb_ledger.CREATE:
            run(connection, statement)
        run(connection, "INSERT INTO kainite_load_table (log_partition, table_schema, table_name, position)"
            " VALUES (%s, 's', 'late', 9), (%s, 's', 'item', 5)", LOG, LOG)  # fmt: skip
        ledger = stopped(connection)
        with target.connect() as view:
            assert view.see(ledger.request) is not None
            assert view.unready(5) == {("s", "late"): "it was loaded after the point"}


def test_a_table_that_is_altered_or_locked_in_between_is_told(
    target: MariadbPointTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_session, "_SESSION", f"{snapshot_session._SESSION}, lock_wait_timeout = 1")  # noqa: SLF001
    with session_of(target.url) as connection:
        ledger = stopped(connection)
        with target.connect() as view:
            assert view.see(ledger.request) is not None
            run(connection, "ALTER TABLE item ADD COLUMN more int, ALGORITHM = COPY")
            with pytest.raises(TargetUnavailableError, match=r"item\); start the comparison again"):
                view.hold()
        with target.connect() as view:
            assert view.see(ledger.request) is not None
            other = session(target.url)
            other.query("LOCK TABLES item WRITE")
            with pytest.raises(TargetUnavailableError, match=r"item\); start the comparison again"):
                view.hold()
            other.close()
