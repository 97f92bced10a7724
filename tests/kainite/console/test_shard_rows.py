"""The rows of shards and daemons."""

from __future__ import annotations

from kainite.console.shard_rows import shard_rows, worker_rows
from kainite.fleet.model.records import Duty, Lead, Picture, Work, Worker
from kainite.fleet.model.states import DutyStatus
from kainite.leases.administration.report import ShardState
from kainite.verdict.facts import FleetFacts, LeaseFacts
from kainite.verdict.judging import judge
from support.verdicts import SHARD, daemon, row, told, well


def test_the_worst_shard_comes_first_and_finished_ones_last() -> None:
    rows = (
        row("shard-done", ShardState.FINISHED, owner=None, children=("shard-new",)),
        row("shard-new", parents=("shard-done",)),
        row("shard-lost", ShardState.UNOWNED, owner=None),
    )
    found = shard_rows(judge(well(leases=LeaseFacts(rows))))
    assert [each.shard for each in found] == ["shard-lost", "shard-new", "shard-done"]
    assert found[1].parents == ("shard-done",)
    assert found[2].children == ("shard-new",)


def test_what_the_daemon_says_of_a_child_stands_beside_its_lease() -> None:
    failing = told(
        "failing", why="3 children failed in a row", failures=3, stderr="ImportError: x", pid=7, behind_millis=1500
    )
    (found,) = shard_rows(judge(well(daemons=(daemon(failing),))))
    assert (found.shard, found.holder, found.pid, found.behind_ms, found.failures) == (SHARD, "w", 7, 1500, 3)
    assert found.stderr == "ImportError: x"


def test_what_a_person_asks_of_a_lease_is_shown() -> None:
    rows = (row(SHARD, asked="move to v, accepted", moved_to="v"),)
    (found,) = shard_rows(judge(well(leases=LeaseFacts(rows))))
    assert (found.asked, found.moved_to) == ("move to v, accepted", "v")


def test_daemons_are_those_of_the_leases_and_of_the_fleet() -> None:
    duty = Duty("log", Work(), DutyStatus.RUNNING, "v", "i")
    picture = Picture({"v": Worker("v", "i", capacity=2.0)}, {"log": duty}, Lead("v", "i"))
    one, other = worker_rows(judge(well(fleet=FleetFacts(picture))))
    assert (one.worker, one.leases, one.leads, one.duties, one.load, one.capacity) == ("v", 0, True, ("log",), 1.0, 2.0)
    assert (other.worker, other.leases, other.status) == ("w", 1, "")
