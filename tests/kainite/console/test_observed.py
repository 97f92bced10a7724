"""An application is read while somebody looks, once for all who look, and not otherwise."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.console import observed
from kainite.console.observed import ObservedApplication
from kainite.settings import load
from support.log_cli import LogWorld


def application(world: LogWorld) -> ObservedApplication:
    return ObservedApplication(load(world.properties, needs=("applicationName",)), world.properties)


async def test_all_who_look_share_one_reading(log_world: LogWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed, "UNITS_S", 3600.0)
    monkeypatch.setattr(observed, "FACTS_S", 3600.0)
    seen = await asyncio.to_thread(application, log_world)
    calls = list[str]()
    whole = seen.store.read_head

    def counted(partition: str) -> Any:
        calls.append(partition)
        return whole(partition)

    monkeypatch.setattr(seen.store, "read_head", counted)
    assert calls == [], "nobody has looked"
    with ThreadPoolExecutor(8) as threads:
        await asyncio.gather(*(asyncio.get_running_loop().run_in_executor(threads, seen.read_units) for _ in range(20)))
        verdicts = await asyncio.gather(
            *(asyncio.get_running_loop().run_in_executor(threads, seen.verdict) for _ in range(20))
        )
    assert calls.count("0") == 1
    assert len({id(verdict) for verdict in verdicts}) == 1
    assert [unit.uow for unit in seen.units.dispatched()] == ["done", "bad", "waiting", "fresh"]


async def test_a_log_that_does_not_answer_is_told_and_what_was_read_stays(
    log_world: LogWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed, "UNITS_S", 0.0)
    seen = await asyncio.to_thread(application, log_world)
    assert (await asyncio.to_thread(seen.read_units)).complete
    monkeypatch.setattr(seen.store, "read_head", _away)
    reading = await asyncio.to_thread(seen.read_units)
    assert "away" in reading.error
    assert len(seen.units) == 4


def _away(partition: str) -> None:
    raise LogUnavailableError("DynamoDB is away")
