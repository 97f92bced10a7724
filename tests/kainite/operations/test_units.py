"""Requests about units that are left in the log's inbox, and what is said of the answers."""

from __future__ import annotations

import asyncio

import pytest

from kainite.base.position import Position
from kainite.log.format.entry import Outcome, UnitStatus
from support.log_builders import fragment
from support.log_cli import LogWorld


@pytest.mark.parametrize(
    ("decided", "code", "says"),
    [
        (UnitStatus.DISCARDED, 0, "unit fresh is discarded\n"),
        (UnitStatus.COMMITTED, 1, "unit fresh was applied before it could be discarded\n"),
    ],
)
async def test_what_the_apply_job_decided_of_a_unit_in_progress_is_said(
    log_world: LogWorld, decided: UnitStatus, code: int, says: str
) -> None:
    fresh = next(tid for tid, unit in log_world.owner.state.units.items() if unit.uow == "fresh")

    async def apply_job() -> None:
        async with asyncio.timeout(60):
            while log_world.owner.state.units[fresh].status is not UnitStatus.DISCARDING:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await log_world.apply(Outcome(fresh, decided))

    deciding = asyncio.create_task(apply_job())
    status, output, errors = await log_world.kainite("uow", "discard", "fresh", "--yes", "--timeout", "60")
    await deciding
    assert (status, says in output + errors) == (code, True)
    assert "before its next micro-batch the apply job discards it" in output


async def test_a_unit_in_progress_stays_asked_for_without_an_apply_job(log_world: LogWorld) -> None:
    status, output, errors = await log_world.kainite("uow", "discard", "fresh", "--yes", "--timeout", "1")
    assert (status, errors) == (0, "")
    assert output.splitlines()[-1].startswith("unit fresh is not decided on yet, since no apply job runs")
    (row,) = await log_world.rows("--uow", "fresh")
    assert row["status"] == "discarding"
    assert row["cause"].startswith("discarded by ")
    assert row["cause"].endswith("; it was in progress")


async def test_without_a_daemon_the_request_says_so(log_world: LogWorld) -> None:
    elsewhere = log_world.properties.with_name("elsewhere.properties")
    elsewhere.write_text(f"{log_world.properties.read_text()}logPartition = 7\n")
    lonely = LogWorld(elsewhere, log_world.table, log_world.store, log_world.owner)
    status, _, errors = await lonely.kainite("uow", "retry", "bad", "--timeout", "0.2")
    assert status == 1
    assert "is a daemon running" in errors


async def test_more_units_are_discarded_than_are_asked_at_once(log_world: LogWorld) -> None:
    units = [fragment(f"b{number}", [number], count=1) for number in range(100, 160)]
    await log_world.owner.append("shard-2", Position(1), Position(1), units)
    ids = [tid for tid, unit in log_world.owner.state.units.items() if unit.uow.startswith("b") and unit.uow != "bad"]
    await log_world.apply(*(Outcome(tid, UnitStatus.FAILED, 0, "junk") for tid in ids))
    status, output, errors = await log_world.kainite("uow", "discard", "--cause", "junk", "--yes", "--timeout", "60")
    assert (status, errors) == (0, "")
    assert output.splitlines()[-1] == "60 of 60 units: discard"
    assert {row["status"] for row in await log_world.rows("--cause", "discarded by")} == {"discarded"}
