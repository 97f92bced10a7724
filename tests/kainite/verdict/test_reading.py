"""The facts as they are read from real tables, with a limit on everything that is awaited."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kainite.base.clock import epoch_ms
from kainite.fleet.model.records import Worker
from kainite.fleet.store.contract import FleetCommit, PutRecord
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.leases.administration.report import Pulse, ShardState
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.state.summary import DurableMark, LogSummary, as_text
from kainite.owner.mount import Mount, mount
from kainite.settings import Settings, load
from kainite.store.dynamodb import DynamoDBStore
from kainite.verdict.facts import Facts
from kainite.verdict.reading import FactsReader
from support.names import unique

MARK = DurableMark(0, 0, -1)


class Clock:
    """A clock that only sleeping moves; ``then`` is called after each sleep."""

    def __init__(self) -> None:
        self.now = 0.0
        self.then: Callable[[], object] = lambda: None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.then()


@pytest.fixture
def settings(moto_endpoint: str, tmp_path: Path) -> Settings:
    name, path = unique("app"), tmp_path / "app.properties"
    path.write_text(
        f"applicationName = {name}\nstreamName = s\nregionName = us-east-1\ndynamoDBEndpoint = {moto_endpoint}\n"
        "unitsOfWork = true\n"
    )
    return load(path, needs=("applicationName",))


def facts(settings: Settings, clock: Clock, wait: float | None = None) -> Facts:
    return FactsReader(settings, "F", wait, clock=clock, sleep=clock.sleep).read()


def mounted(dynamodb: Any, settings: Settings) -> Mount:
    store = DynamoDBStore(dynamodb, settings.log.table)
    store.create()
    return mount(store, "0", "w", 10.0)


def figures(age_ms: int = 0) -> str:
    return as_text(LogSummary(epoch_ms() - age_ms, 5, MARK, failed=2))


def test_nothing_at_all_is_told_as_such(settings: Settings) -> None:
    clock = Clock()
    found = facts(settings, clock)
    assert found.log is not None
    assert "there is no" in found.log.error
    assert found.leases is not None
    assert "does not exist" in found.leases.error
    assert (found.fleet, found.daemons, clock.now) == (None, (), 0.0)


def test_a_log_whose_figures_are_young_is_not_waited_for(settings: Settings, dynamodb: Any) -> None:
    mounted(dynamodb, settings).renew(4, summary=figures())
    clock = Clock()
    log = facts(settings, clock).log
    assert log is not None
    assert (log.owner, log.alive, log.released, log.waited, clock.now) == ("w", True, False, 0.0, 0.0)
    assert log.summary is not None
    assert log.summary.failed == 2


def test_an_owner_without_young_figures_lives_when_its_heartbeat_comes(settings: Settings, dynamodb: Any) -> None:
    holding, clock = mounted(dynamodb, settings), Clock()
    clock.then = lambda: holding.renew(4, summary=figures(age_ms=3_600_000))  # its clock is wrong
    log = facts(settings, clock).log
    assert log is not None
    assert log.alive
    assert clock.now == pytest.approx(0.2)
    assert log.summary is not None, "the figures are those of that heartbeat"


@pytest.mark.parametrize(("wait", "alive", "at_most"), [(None, False, 6.8), (0.0, None, 0.0), (2.0, None, 2.2)])
def test_a_dead_owner_costs_two_heartbeats_or_what_is_allowed(
    settings: Settings, dynamodb: Any, wait: float | None, alive: bool | None, at_most: float
) -> None:
    mounted(dynamodb, settings).renew(4, summary=figures(age_ms=60_000))
    clock = Clock()
    log = facts(settings, clock, wait).log
    assert log is not None
    assert log.alive is alive
    assert clock.now <= at_most
    assert log.summary is not None, "what is known from before is told"


def test_a_log_that_was_released_is_nobodys(settings: Settings, dynamodb: Any) -> None:
    mounted(dynamodb, settings).release()
    log = facts(settings, Clock()).log
    assert log is not None
    assert (log.owner, log.released, log.alive) == ("w", True, None)


def test_leases_are_observed_until_they_have_moved(settings: Settings, dynamodb: Any) -> None:
    table = LeaseTable(dynamodb, settings.leases.table)
    table.create()
    table.put_new(Lease("s-1"))
    lease = table.get("s-1")
    assert lease is not None
    held = table.take(lease, "w")
    assert held is not None
    clock = Clock()

    def renew() -> None:
        nonlocal held
        assert held is not None
        held = table.renew(held)

    clock.then = renew
    found = facts(settings, clock).leases
    assert found is not None
    assert [(row.shard, row.pulse) for row in found.rows] == [("s-1", Pulse.FRESH)]
    clock.then, clock.now = lambda: None, 0.0
    found = facts(settings, clock).leases
    assert found is not None
    assert [row.state for row in found.rows] == [ShardState.EXPIRED]
    assert clock.now <= settings.leases.failover + 1


def test_the_fleets_table_is_read_where_the_settings_have_one(
    settings: Settings, dynamodb: Any, tmp_path: Path
) -> None:
    path = tmp_path / "app.properties"
    path.write_text(path.read_text() + "fleet = true\n")
    settings = load(path, needs=("applicationName",))
    missing = facts(settings, Clock()).fleet
    assert missing is not None
    assert missing.error
    store = DynamoDBFleetStore(dynamodb, settings.fleet.table, 1)
    store.create()
    assert store.commit(FleetCommit((PutRecord(Worker("w", "i")),)))
    fleet = facts(settings, Clock()).fleet
    assert fleet is not None
    assert fleet.picture is not None
    assert list(fleet.picture.workers) == ["w"]


def test_the_processes_of_the_file_are_asked_and_those_that_are_named(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text(path.read_text() + "metricsPort = 1\nmetricsHost = 0.0.0.0\n")
    found = FactsReader(load(path, needs=("applicationName",)), "F", 0.0, [("127.0.0.1", 2)]).read()
    assert [daemon.address for daemon in found.daemons] == ["127.0.0.1:1", "127.0.0.1:2"]
    assert all(daemon.error for daemon in found.daemons)
