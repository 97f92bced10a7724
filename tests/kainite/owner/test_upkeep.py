"""The upkeep of a log, step by step: what each run does, and what it leaves to the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.log.collecting.collect import begin
from kainite.log.collecting.reported_shards import STALE_S
from kainite.log.collecting.waiting import Waiting
from kainite.log.contract import LogStore
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.loading import load_state
from kainite.owner.upkeep import LogUpkeep
from kainite.store.memory import MemoryStore
from support.outcomes_log import OutcomesLog
from support.upkept_log import RULES, SETTINGS, OwnedLog, P
from support.waiting import until


@pytest.fixture
def log() -> OwnedLog:
    return OwnedLog(MemoryStore())


def low(store: LogStore) -> int:
    head = store.read_head(P)
    assert head is not None
    return head.low_water_mark


async def test_outcomes_are_copied_once(log: OwnedLog) -> None:
    await log.units("A", "B")
    OutcomesLog(log.store).report(Outcome(0, UnitStatus.COMMITTED, 0), Outcome(1, UnitStatus.FAILED, 0, "bad"))
    for _ in range(2):
        await log.run()
        assert [(unit.uow, unit.status) for unit in log.state.units.values()] == [("B", UnitStatus.FAILED)]
        assert log.state.through == 0


async def test_requests_are_answered_when_their_outcome_is_in_the_log(log: OwnedLog) -> None:
    await log.units("A")
    OutcomesLog(log.store).report(Outcome(0, UnitStatus.FAILED, 0, "bad"))
    await log.run()
    asked = [log.store.put_request(P, {"action": action, "uow": "A", "by": "me"}) for action in ("dance", "discard")]
    await log.run()
    answers: list[Mapping[str, str] | None] = [log.store.take_answer(P, request) for request in asked]
    assert [answer and answer["result"] for answer in answers] == ["refused", "ok"]
    assert load_state(log.store, P).units == {}


async def test_a_request_whose_answer_was_lost_is_not_carried_out_twice(
    log: OwnedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.units("A")
    OutcomesLog(log.store).report(Outcome(0, UnitStatus.FAILED, 0, "bad"))
    await log.run()
    request = log.store.put_request(P, {"action": "retry", "uow": "A", "by": "me"})

    def lost(*_: object) -> None:
        raise LogUnavailableError("lost")

    with monkeypatch.context() as cut:
        cut.setattr(log.store, "answer_request", lost)
        with pytest.raises(LogUnavailableError):
            await log.run()
    assert log.state.units[0].attempt == 1
    await log.run()
    answer = log.store.take_answer(P, request)
    assert answer is not None
    assert (answer["message"], log.state.units[0].attempt) == ("done before", 1)


async def test_a_snapshot_comes_after_enough_entries_and_the_one_before_it_stays_readable(log: OwnedLog) -> None:
    outcomes = OutcomesLog(log.store)
    begins: list[int] = []
    while len(begins) < 4:
        await log.units("U" + str(log.state.next_id))
        outcomes.report(Outcome(next(iter(log.state.units)), UnitStatus.COMMITTED, 0))
        before = log.state.snapshot_id
        await log.run()
        if log.state.snapshot_id != before:
            begins.append(log.state.snapshot_since)
            assert low(log.store) <= (begins[-2] if len(begins) > 1 else 0), "the snapshot before has all its entries"
    assert low(log.store) > 0
    assert load_state(log.store, P, names=True).next_id == log.state.next_id


async def test_an_audit_trail_that_cannot_be_written_truncates_nothing(log: OwnedLog) -> None:
    class Broken:
        def write(self, *_: object) -> None:
            raise LogUnavailableError("the disk is full")

    log.upkeep = LogUpkeep(
        log.store, SETTINGS, RULES, log.mounted, Broken(), Waiting(RULES.timeout, lambda: 0.0), log.reported,
        log.looking,
    )  # fmt: skip
    outcomes, failed = OutcomesLog(log.store), 0
    for _ in range(60):
        await log.units("U" + str(log.state.next_id))
        outcomes.report(Outcome(next(iter(log.state.units)), UnitStatus.COMMITTED, 0))
        try:
            await log.run()
        except LogUnavailableError:
            failed += 1
    assert failed
    assert low(log.store) == 0


async def test_a_stream_is_awaited_until_every_daemon_sees_its_leases(log: OwnedLog) -> None:
    await log.write(lambda state: begin(state, 0, 0, "1:a:1"))
    for seconds, awaited in ((0.0, {"1:a:1"}), (STALE_S / 2, {"1:a:1"}), (STALE_S / 2, set[str]())):
        log.now += seconds
        log.reported.after(frozenset({"1:a:1:s0"}))
        await log.run()
        assert log.state.awaited == load_state(log.store, P).awaited == awaited


async def test_it_runs_when_outcomes_are_announced_and_when_a_poll_is_over(log: OwnedLog) -> None:
    await log.units("A")
    OutcomesLog(log.store).report(Outcome(0, UnitStatus.COMMITTED, 0))
    running = asyncio.create_task(log.upkeep.run(log))
    await until(lambda: not log.state.units)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
