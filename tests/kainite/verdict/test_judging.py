"""The verdict, by facts: what is wrong, how bad it is, and what to do first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kainite.fleet.model.records import Duty, Picture, Work, Worker
from kainite.fleet.model.states import DutyStatus, WorkerStatus
from kainite.leases.administration.report import ShardState
from kainite.log.state.summary import ShardFigure
from kainite.observe.check import Level
from kainite.verdict.facts import DaemonFacts, Facts, FleetFacts, LeaseFacts, LogFacts, SourceFacts
from kainite.verdict.judging import ExitStatus, judge
from support.verdicts import NOW_MS, SHARD, daemon, figure, log, row, summary, told, well


def with_summary(**fields: Any) -> Facts:
    return well(log=log(summary=summary(**fields)))


def with_duty(status: DutyStatus, **fields: Any) -> Facts:
    return well(fleet=FleetFacts(Picture(duties={"extract": Duty("extract", Work("extract"), status, **fields)})))


FAILED = figure("T-5", 5, "failed", cause="violates a check [23514]")
LOCKED = figure("T-6", 6, cause="the row is locked")

TABLE: list[tuple[str, Facts, ExitStatus, str, str]] = [
    ("failed", with_summary(failed=1, oldest=FAILED, first_failed=FAILED), ExitStatus.DEGRADED,
     "failed units: 1 unit failed; the first is T-5 (id 5): violates a check [23514]",
     "kainite uow retry -p app.properties T-5"),
    ("blocked", with_summary(failed=1, blocked=3, oldest=FAILED, first_failed=FAILED), ExitStatus.DEGRADED,
     "blocked units: 3 units blocked: the first waits for T-5", "kainite uow retry"),
    ("delayed", with_summary(delayed=1, oldest=LOCKED, first_delayed=LOCKED), ExitStatus.DEGRADED,
     "delayed units: 1 unit tried in vain and tried again; the first is T-6 (id 6): the row is locked", "pg_locks"),
    ("not applied", with_summary(in_progress=9, oldest=figure(source_ms=NOW_MS - 600_000)), ExitStatus.BROKEN,
     "applying: 9 units not applied; the oldest is T-1 (id 7), 10 min old", "kainite apply -p app.properties"),
    ("paused", with_summary(in_progress=9, oldest=figure(source_ms=NOW_MS - 600_000), paused="paused by ann"),
     ExitStatus.DEGRADED, "applying: applying is paused by ann; 9 units not applied",
     "kainite log resume -p app.properties"),
    ("young", with_summary(in_progress=9, oldest=figure()), ExitStatus.HEALTHY, "", ""),
    ("backlog", with_summary(backlog="reading waits: 200000 units"), ExitStatus.BROKEN,
     "room in the log: reading waits: 200000 units", "kainite apply"),
    ("held", with_summary(collecting=2, held="2 complete units wait for number 17"), ExitStatus.DEGRADED,
     "collecting: 2 complete units wait for number 17", "does not come"),
    ("half", with_summary(collecting=1, oldest_open=figure(tid=None, source_ms=NOW_MS - 900_000)), ExitStatus.DEGRADED,
     "15 min old", "kainite leases"),
    ("no owner", well(log=log(alive=None, released=True)), ExitStatus.BROKEN,
     "owner: nobody owns the log; w has released it", "kainite run -p app.properties"),
    ("dead owner", well(log=log(alive=False, waited=6.2)), ExitStatus.BROKEN,
     "owner: w sent no heartbeat within 6.2 s; its last figures are 1.0 s old", "kainite run -p app.properties"),
    ("owner not observed", well(log=log(alive=None, waited=0.0)), ExitStatus.UNKNOWN, "", ""),
    ("never owned", well(log=LogFacts("0")), ExitStatus.BROKEN, "log partition 0 was never owned", "kainite run"),
    ("no table", well(log=LogFacts("0", error="log table x does not exist"), leases=LeaseFacts(error="no")),
     ExitStatus.BROKEN, "owner: the log was not read: log table x does not exist", "AWS"),
    ("unheld", well(leases=LeaseFacts((row(state=ShardState.UNOWNED, owner=None),))), ExitStatus.BROKEN,
     f"shards: {SHARD}: nobody holds it", "kainite run -p app.properties"),
    ("expired", well(leases=LeaseFacts((row(state=ShardState.EXPIRED),))), ExitStatus.BROKEN,
     f"shards: {SHARD} (held by w): w has stopped renewing its lease", "kainite run"),
    ("unread", with_summary(shards=1, unread=(ShardFigure(SHARD, 300.0),)), ExitStatus.BROKEN,
     f"shards: {SHARD} (held by w): the log has nothing newer than 5 min ago", "/health of w"),
    ("hung", well(daemons=(daemon(told("hung", why="the child has not answered processRecords for 400 s")),)),
     ExitStatus.BROKEN, "the child has not answered processRecords for 400 s", "standard error"),
    ("failing", well(daemons=(daemon(told("waiting", failures=2, stderr="ImportError: no module")),)),
     ExitStatus.DEGRADED, "2 children failed in a row; its child's last words: ImportError: no module",
     "record processor"),
    ("no lease", well(leases=LeaseFacts()), ExitStatus.BROKEN, "lease table: it has no lease", "kainite run"),
    ("daemon", well(daemons=(daemon(told(), problems=["the lease table has not answered for 99 s"]),)),
     ExitStatus.DEGRADED, "the lease table has not answered for 99 s", "http://h:1/health"),
    ("other targets", replace(with_summary(assigned="theirs"), assigned="mine"), ExitStatus.DEGRADED,
     "targets: worker w, which owns the log, has other targets", "kainite run -p app.properties --check"),
    ("the same targets", replace(with_summary(assigned="mine"), assigned="mine"), ExitStatus.HEALTHY, "", ""),
    ("another log", replace(well(leases=LeaseFacts((row(log="orders-log/1"),))), collects_into="orders-log/0"),
     ExitStatus.BROKEN, "one log: worker w collects this application's shards into log orders-log/1, and this settings"
     " file has log orders-log/0", "logPartition"),
    ("the same log", replace(well(leases=LeaseFacts((row(log="orders-log/0"),))), collects_into="orders-log/0"),
     ExitStatus.HEALTHY, "", ""),
    ("daemon away", well(daemons=(DaemonFacts("h:1", error="refused"),)), ExitStatus.HEALTHY, "", ""),
    ("duty in error", with_duty(DutyStatus.ERROR, error="exit status 3"), ExitStatus.BROKEN,
     "duty extract: exit status 3", "kainite fleet start -p app.properties extract"),
    ("duty nowhere", with_duty(DutyStatus.UNASSIGNED), ExitStatus.DEGRADED,
     "does not run: unassigned", "fleet workers"),
    ("duty stopped", with_duty(DutyStatus.STOPPED, halted=True), ExitStatus.HEALTHY, "", ""),
    ("duty runs", with_duty(DutyStatus.RUNNING, worker="w"), ExitStatus.HEALTHY, "", ""),
    ("no fleet table", well(fleet=FleetFacts(error="fleet table does not exist")), ExitStatus.BROKEN,
     "fleet table: fleet table does not exist", "kainite run"),
    ("extractor late", well(source=SourceFacts(seconds=120.0)), ExitStatus.DEGRADED,
     "source: the stream is 2 min behind the source", "extractor"),
    ("extractor silent", well(source=SourceFacts(heard=3_600.0, problems=("it has answered nothing for 3600 s",))),
     ExitStatus.BROKEN, "source: it has answered nothing for 3600 s", "extractor"),
    ("source idle", well(source=SourceFacts(newest=9_000.0, heard=1.0)), ExitStatus.HEALTHY, "", ""),
    ("extractor unknown", well(source=SourceFacts()), ExitStatus.HEALTHY, "", ""),
    ("well", well(), ExitStatus.HEALTHY, "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "status", "cause", "remedy"), [case[1:] for case in TABLE],
                         ids=[case[0] for case in TABLE])  # fmt: skip
def test_the_verdict_by_facts(facts: Facts, status: ExitStatus, cause: str, remedy: str) -> None:
    verdict = judge(facts)

    assert verdict.status is status, verdict.checks
    told = [f"{check.name}: {check.cause}" for check in verdict.troubles]
    assert any(cause in text for text in told) or not cause, told
    assert remedy in verdict.next_step
    assert bool(verdict.next_step) == bool(verdict.troubles), "trouble has a next step, and nothing else has one"


def test_the_worst_trouble_gives_the_next_step() -> None:
    verdict = judge(well(log=log(alive=False, summary=summary(failed=1, first_failed=FAILED, oldest=FAILED))))
    assert [check.name for check in verdict.troubles] == ["owner", "failed units"]
    assert "kainite run" in verdict.next_step


def test_figures_of_a_dead_owner_are_told_with_their_age() -> None:
    old = next(check for check in judge(well(log=log(alive=False))).checks if check.name == "figures")
    assert (old.level, old.cause) == (
        Level.NOTE,
        "the figures of units are 1.0 s old; units may have been applied since",
    )
    assert not [check for check in judge(well()).checks if check.name == "figures"]


def test_workers_that_are_gone_are_named() -> None:
    gone = Worker("host-2", "i", WorkerStatus.DEAD)
    verdict = judge(well(fleet=FleetFacts(Picture(workers={"host-2": gone}))))
    assert ("workers", "gone: host-2") in [(check.name, check.cause) for check in verdict.checks]
    assert verdict.status is ExitStatus.HEALTHY, "its shards and duties tell whether anything is missing"


def test_what_a_daemon_says_of_its_units_and_shards_is_told_once() -> None:
    units = {"name": "failed units", "level": "degraded", "cause": "1 unit failed", "remedy": ""}
    hung = told("hung", why="it hangs")
    answer = daemon(hung, problems=["1 unit failed", f"{SHARD}: it hangs"], checks=[units])
    checks = [check for check in judge(well(daemons=(answer,))).checks if check.name == "daemon h:1"]
    assert [check.level for check in checks] == [Level.OK]
