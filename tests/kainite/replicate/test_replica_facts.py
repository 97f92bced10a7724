"""What a target tells of its replica, for a verdict."""

from __future__ import annotations

from dataclasses import replace

import psycopg

from kainite.replicate.ledger import LoadState
from kainite.replicate.replica_facts import facts_of, read_replica
from kainite.replicate.status import ReplicaStatus, TableState, TableStatus
from kainite.replicate.verify_ledger import NO_OUTCOME, VerifyLedger, VerifyOutcome
from kainite.verdict.facts import ReplicaFacts, ReplicaTableFacts

LOG = "log/0"
NOW = 1_795_435_200.0  # 2026-11-23T12:00:00Z
OUTCOME = VerifyOutcome("2026-11-23T11:59:00+00:00", "0/1", "different", 2, 10, 3, 1, 0, 0, 1.5,
                        "2026-11-23T11:00:00+00:00", 60.0)  # fmt: skip


def table(name: str, state: TableState, cause: str | None = None) -> TableStatus:
    return TableStatus(name, state, 5, 2, 0, 0, cause)


def test_a_status_is_told_in_short() -> None:
    tables = (
        table("a", TableState.LIVE), table("b", TableState.LOADING), table("c", TableState.CATCHING_UP),
        table("d", TableState.FAILED, "no room"), table("e", TableState.GIVEN_UP, "full"),
    )  # fmt: skip
    found = facts_of(ReplicaStatus(LoadState.LIVE, False, tables=tables, verified=OUTCOME), NOW)
    assert found == ReplicaFacts(
        "", "live", 12, ("b", "c"), (("d", "no room"),), "different", found.summary, False, 3, 60.0, 3_600.0, 60.0,
        given_up=(("e", "full"),), tables=found.tables,
        marks={name: f"{name} is not live: {state}" for name, state in (
            ("b", "loading"), ("c", "catching up"), ("d", "failed"), ("e", "given up"))},
    )  # fmt: skip
    assert [(one.name, one.is_live, one.cause) for one in found.tables] == [
        ("d", False, "no room"), ("e", False, "full"), ("b", False, ""), ("c", False, ""), ("a", True, "")
    ]  # fmt: skip
    assert found.tables[-1] == ReplicaTableFacts("a", "live", True, "", 5, 2)
    assert found.summary.startswith("different: 2 tables, 10 rows as of 0/1, 3 differ, 1 differ by units")
    assert found.is_late
    never = facts_of(ReplicaStatus(None, False, verified=replace(NO_OUTCOME, every=60.0, trouble="away")), NOW)
    assert never == ReplicaFacts(every=60.0, trouble="away")


def test_a_target_is_asked_and_one_that_is_away_is_told(postgres: str) -> None:
    assert read_replica(postgres, LOG) == ReplicaFacts()
    with psycopg.connect(postgres, autocommit=True) as connection:
        ledger = VerifyLedger(connection, LOG)
        ledger.begin()
        ledger.ask()
        ledger.note(OUTCOME)
    found = read_replica(postgres, LOG)
    assert (found.verdict, found.passed, found.different, found.every) == ("different", False, 3, None)
    away = read_replica("host=127.0.0.1 port=1 user=u dbname=d", LOG)
    assert "refused" in away.error
