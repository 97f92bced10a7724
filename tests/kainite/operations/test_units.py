"""Requests about units that are left in the log's inbox, and what is said of the answers."""

from __future__ import annotations

import asyncio

import pytest

from kainite.base.position import Position
from kainite.log.format.entry import OperationResult, Outcome, UnitStatus
from kainite.log.state.unit_filter import UnitFilter
from kainite.operations.inbox import Asker
from kainite.operations.operation import DiscardUnits, OperationOutcome, RetryUnits
from kainite.operations.units import AT_ONCE, preview_units, resolve_units
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


async def test_units_that_a_filter_selects_are_one_request(log_world: LogWorld) -> None:
    units = [fragment(f"b{number}", [number], count=1) for number in range(100, 160)]
    await log_world.owner.append("shard-2", Position(1), Position(1), units)
    ids = [tid for tid, unit in log_world.owner.state.units.items() if unit.uow.startswith("b") and unit.uow != "bad"]
    await log_world.apply(*(Outcome(tid, UnitStatus.FAILED, 0, "junk") for tid in ids))
    status, output, errors = await log_world.kainite("uow", "discard", "--cause", "junk", "--yes", "--timeout", "60")
    assert (status, errors) == (0, "")
    assert output.splitlines()[-1] == "60 units discarded"
    assert {row["status"] for row in await log_world.rows("--cause", "discarded by")} == {"discarded"}


async def test_more_units_are_named_than_are_asked_at_once(log_world: LogWorld) -> None:
    names = [f"nobody-{number}" for number in range(AT_ONCE + 5)]
    told: list[tuple[str, bool]] = []

    def discard() -> OperationOutcome:
        return resolve_units(
            log_world.store, "0", DiscardUnits(("bad", *names)), Asker("me"), 60.0, lambda *each: told.append(each)
        )

    outcome = await asyncio.to_thread(discard)
    assert (outcome.result, outcome.count, outcome.refused) == (OperationResult.DONE, 1, len(names))
    assert told[0] == ("unit bad is discarded", False)
    assert [bad for _, bad in told[1:]] == [True] * len(names)


async def test_a_preview_says_what_would_be_done_and_changes_nothing(log_world: LogWorld) -> None:
    before = log_world.owner.state.next_id
    chosen = await asyncio.to_thread(
        preview_units, log_world.store, "0", DiscardUnits(wanted=UnitFilter(names=("b*",)))
    )
    assert (chosen.count, chosen.names, chosen.among, chosen.behind, chosen.asks) == (1, ("bad",), 1, 1, True)
    retry = await asyncio.to_thread(preview_units, log_world.store, "0", RetryUnits(("bad",)))
    assert retry.does == "1 unit will be applied again, and then the one that waits for it"
    assert (retry.asks, log_world.owner.state.next_id) == (False, before)
