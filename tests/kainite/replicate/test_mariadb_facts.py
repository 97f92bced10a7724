"""What a MariaDB target tells of its load, for a verdict."""

from __future__ import annotations

import socket
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from kainite import settings
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.observe.check import Level
from kainite.replicate.asked_target import asking, giving_up
from kainite.replicate.ledger import CopyStep, LoadStep
from kainite.replicate.mariadb_facts import read_mariadb_replica
from kainite.replicate.mariadb_load_ledger import MariadbLoadLedger
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.replicate.verify_ledger import NO_OUTCOME, VerifyLedger
from kainite.targets.mariadb.address import server_of
from kainite.targets.mariadb.rows import rows_of
from kainite.verdict.facts import ReplicaFacts
from kainite.verdict.replica import replica_checks
from kainite_spark.targets.mariadb import ledger as of_the_apply_job
from support.mariadb_server import run_script
from support.names import unique

LOG = "log/0"
POINT = ConsistentPoint(16, "s", SourceIdentity("7", 1, "shop"))


def test_a_load_is_told_from_its_beginning_to_its_cut_over(mariadb: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.properties"
    file.write_text(f"applicationName=shop\nunitsOfWork=true\nlogTableName=log\nlogPartition=0\ntarget={mariadb}\n")
    configured = settings.load(file, needs=())
    ask = asking(configured)
    assert ask is not None
    giving_up(configured)()
    assert ask() == ReplicaFacts()
    with mariadb_session(mariadb) as connection:
        connection.query(of_the_apply_job.CREATE[1])
        made = MariadbLoadLedger(connection, LOG)
        made.create()
        made.begin()
        assert ask().load == "loading"
        steps = [LoadStep(number, 1, "shop", name, CopyStep((), "")) for number, name in enumerate(("a", "a", "b"), 1)]
        made.plan(POINT, [], steps)
        rows_of(connection, "UPDATE kainite_load_step SET done_at = NOW(), copied_rows = 5 WHERE step = 1")
        made.failed(3, "too long")
        found = ask()
        assert (found.load, found.ranges_left, found.loading) == ("loading", 2, ("shop.a",))
        assert found.failed == (("shop.b", "too long"),)
        assert [(one.name, one.state, one.rows) for one in found.tables] == [
            ("shop.b", "failed", 0), ("shop.a", "loading", 5)
        ]  # fmt: skip
        [check] = replica_checks(found, "shop.properties")
        assert (check.level, "table shop.b failed: too long" in check.cause) == (Level.DEGRADED, True)
        rows_of(connection, "UPDATE kainite_load_step SET done_at = NOW()")
        made.finish()
        assert [(one.state, one.is_live) for one in ask().tables] == [("live", True), ("live", True)]
        assert [one.level for one in replica_checks(ask())] == [Level.OK]
        made.cut_over(lambda _: None)
        assert ask().load == "cut over"


def test_comparisons_of_a_target_that_was_filled_by_hand_are_told(mariadb: str) -> None:
    with mariadb_session(mariadb) as connection:
        compared = VerifyLedger(connection, LOG)
        compared.begin()
        compared.note(replace(NO_OUTCOME, ended_at="2026-01-01T00:00:00+00:00", verdict="different", different=3))
        compared.note_repeated(60.0, "away")
    found = read_mariadb_replica(mariadb, LOG)
    assert (found.load, found.verdict, found.different, found.trouble) == ("", "different", 3, "away")
    assert Level.DEGRADED in {check.level for check in replica_checks(found)}


def test_a_role_of_an_apply_job_alone_needs_no_other_right(mariadb: str, mariadb_server: str) -> None:
    user, database = unique("u").replace("-", "_"), server_of(mariadb).database
    run_script(mariadb_server, f"CREATE USER {user}@localhost; GRANT CREATE, SELECT ON {database}.kainite_load TO"
               f" {user}@localhost")  # fmt: skip
    try:
        assert read_mariadb_replica(mariadb.replace("root@", f"{user}@"), LOG) == ReplicaFacts()
    finally:
        run_script(mariadb_server, f"DROP USER {user}@localhost")


def test_a_server_that_is_away_or_says_nothing_is_told() -> None:
    assert "cannot connect" in read_mariadb_replica("mariadb://u@127.0.0.1:1/d", LOG).error
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
        assert "timed out" in read_mariadb_replica(f"mariadb://u@127.0.0.1:{port}/d", LOG).error
