"""The fleet beside a daemon: off, or one worker until the daemon stops."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import FleetError, SettingsError
from kainite.fleet.model.records import Subject
from kainite.fleet.opening import duties_beside, timing_of
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.settings import Settings, load
from support.names import unique
from support.waiting import until

LIMIT_S = 60.0
"""Seconds that a worker has to leave: a loaded machine takes its time."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    path = tmp_path / "app.properties"
    path.write_text(
        f"streamName = s\napplicationName = app\nregionName = us-east-1\nexecutableName = true\nfleet = true\n"
        f"fleetTableName = {unique('Fleet')}\nworkerId = w\n"
    )
    settings = load(path)
    fleet, child = replace(settings.fleet, ping=0.1, timeout=1.0), replace(settings.child, shutdown_grace=LIMIT_S)
    return replace(settings, fleet=fleet, child=child)


async def test_where_it_is_off_nothing_is_called(settings: Settings) -> None:
    stop = asyncio.Event()
    off = replace(settings, fleet=replace(settings.fleet, enabled=False))
    nobody: Any = None
    async with duties_beside(off, nobody, stop):
        pass
    assert not stop.is_set(), "nobody is told to stop"


async def test_a_worker_enters_and_leaves_with_its_daemon(settings: Settings, dynamodb: Any) -> None:
    store = DynamoDBFleetStore(dynamodb, settings.fleet.table)
    store.create()
    async with duties_beside(settings, dynamodb, asyncio.Event()):
        await until(lambda: "w" in store.read().workers)
    assert [line.status for line in store.history(Subject.WORKER, "w", 1)] == ["dead"]


async def test_a_daemon_whose_fleet_cannot_go_on_is_told_to_stop(
    settings: Settings, dynamodb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: object) -> None:
        raise FleetError("refused")

    monkeypatch.setattr(DynamoDBFleetStore, "read", refused)
    stop = asyncio.Event()
    with pytest.raises(FleetError, match="refused"):
        async with duties_beside(settings, dynamodb, stop):
            await asyncio.wait_for(stop.wait(), 30)


async def test_wrong_dormant_hours_are_refused_at_the_start(settings: Settings, dynamodb: Any) -> None:
    wrong = replace(settings, fleet=replace(settings.fleet, dormant="every night"))
    with pytest.raises(SettingsError, match="fleetDormant"):
        async with duties_beside(wrong, dynamodb, asyncio.Event()):
            pass


def test_the_times_are_the_settings(settings: Settings) -> None:
    timing = timing_of(settings.fleet)
    assert (timing.ping, timing.timeout) == (0.1, 1.0)
