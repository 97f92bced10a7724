"""The owner: nothing acknowledged before it is durable, nothing collected twice, one owner at a time."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.log.contract import LogStore
from kainite.log.format.entry import (
    SNAPSHOT_PART,
    ControlMeta,
    Entry,
    EntryKind,
    Outcome,
    UnitStatus,
)
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.loading import load_state
from kainite.log.state.snapshot import dump
from kainite.log.state.summary import LogSummary, from_text
from kainite.log.views.unit_table import read_rows
from kainite.settings import LogSettings, UowSettings
from kainite.uow.signature import Signatures
from support.faulty_store import FaultyStore
from support.log_builders import fragment
from support.main_log import MainLog
from support.next_append import append_next
from support.outcomes_log import OutcomesLog
from support.owned_log import owned_log, units_of
from support.waiting import until

SETTINGS = LogSettings(
    table="t", owner="a", enabled=True, lease=2.0, heartbeat=0.05, put_interval=0.0, poll=0.02, queue_bytes=1 << 20
)

UOW = UowSettings()
OTHER = replace(SETTINGS, owner="b")
P = SETTINGS.partition
LIMIT = 10.0


def at(sequence: int) -> Position:
    return Position(sequence)


class TestOutcomes:
    async def test_of_the_apply_job_are_taken_over(self, store: LogStore) -> None:
        apply = OutcomesLog(store)
        async with owned_log(store, SETTINGS, UOW) as log:
            for n in range(3):
                await append_next(log, "s0", at(n), at(n), [fragment(f"T-{n}", [7], count=1)])
            apply.report(Outcome(0, UnitStatus.COMMITTED, 1), Outcome(2, UnitStatus.FAILED, 0, "no such parent"))
            apply.report(Outcome(4, UnitStatus.BLOCKED, None, "waits for T-1"))
            await until(lambda: log.state.through == 1)
            assert [(unit.tid, unit.status) for unit in log.state.units.values()] == [
                (2, UnitStatus.FAILED),
                (4, UnitStatus.BLOCKED),
            ]
            # The owner's own state is a put ahead of what is durable.
            await until(lambda: load_state(store, P).through == 1)

    async def test_are_taken_over_once_whatever_crashes(self, store: LogStore) -> None:
        apply = OutcomesLog(store)
        async with owned_log(store, SETTINGS, UOW) as log:
            await append_next(log, "s0", at(1), at(1), [fragment("T", [7], count=1)])
            apply.report(Outcome(0, UnitStatus.FAILED, 0, "bad"))
            await until(lambda: log.state.through == 0)
        async with owned_log(store, SETTINGS, UOW) as log:
            apply.report(Outcome(0, UnitStatus.COMMITTED, 0))
            await until(lambda: log.state.through == 1)
            assert log.state.units == {}


async def ask(store: LogStore, action: str, uow: str) -> dict[str, str]:
    request_id = await asyncio.to_thread(store.put_request, P, {"action": action, "uow": uow, "by": "me"})
    async with asyncio.timeout(LIMIT):
        while True:
            answer = await asyncio.to_thread(store.take_answer, P, request_id)
            if answer is not None:
                return dict(answer)
            await asyncio.sleep(0.01)


class TestRequests:
    async def test_retry_and_discard_of_a_failed_unit(self, store: LogStore) -> None:
        apply = OutcomesLog(store)
        async with owned_log(store, SETTINGS, UOW) as log:
            await append_next(log, "s0", at(1), at(1), [fragment("T", [7], count=1), fragment("U", [7], count=1)])
            assert (await ask(store, "retry", "T"))["message"] == "unit T is in progress, not failed"
            apply.report(Outcome(0, UnitStatus.FAILED, 0, "bad"), Outcome(1, UnitStatus.BLOCKED, None, "waits for T"))
            await until(lambda: log.state.units[0].status is UnitStatus.FAILED)
            assert "waits for T; resolve that one" in (await ask(store, "retry", "U"))["message"]
            assert (await ask(store, "retry", "T"))["result"] == "ok"
            assert (log.state.units[0].status, log.state.units[0].attempt) == (UnitStatus.IN_PROGRESS, 1)
            apply.report(Outcome(0, UnitStatus.FAILED, 0, "bad again"))
            await until(lambda: log.state.units[0].cause == "bad again")
            assert (await ask(store, "discard", "T"))["result"] == "ok"
            assert 0 not in log.state.units
        assert load_state(store, P).units.keys() == {1}

    async def test_a_malformed_unit_cannot_be_retried(self, store: LogStore) -> None:
        async with owned_log(store, SETTINGS, UOW) as log:
            await append_next(log, "s0", at(1), at(1), [fragment("T", [1, 2], count=1)])
            assert "can never be applied" in (await ask(store, "retry", "T"))["message"]
            assert (await ask(store, "discard", "T"))["result"] == "ok"

    async def test_nonsense_is_refused(self, store: LogStore) -> None:
        async with owned_log(store, SETTINGS, UOW) as log:
            assert "no unit 'X'" in (await ask(store, "retry", "X"))["message"]
            await append_next(log, "s0", at(1), at(1), [fragment("T", [1], count=1)])
            assert "unknown action" in (await ask(store, "explode", "T"))["message"]


class TestSnapshots:
    async def test_truncate_what_is_resolved_and_survive_a_restart(self, store: LogStore) -> None:
        settings = replace(SETTINGS, snapshot_entries=10)
        apply = OutcomesLog(store)
        async with owned_log(store, settings, UOW) as log:
            await append_next(log, "s0", at(0), at(0), [fragment("open", [1])])
            for n in range(1, 40):
                tid = log.state.next_id
                await append_next(log, "s1", at(n), at(n), [fragment(f"T-{n}", [n], count=1)])
                apply.report(Outcome(tid, UnitStatus.COMMITTED, 0))
            await append_next(log, "s0", at(50), at(50), [fragment("open", [2], count=2)])
            [tid] = [unit.tid for unit in log.state.units.values() if unit.uow == "open"]
            apply.report(Outcome(tid, UnitStatus.COMMITTED, 0))
            await until(lambda: log.state.units == {})
            async with asyncio.timeout(LIMIT):
                for n in itertools.count(40):
                    await append_next(log, "s1", at(n), at(n), [])
                    await asyncio.sleep(0.001)
                    if (head := store.read_head(P)) is not None and head.low_water_mark > tid:
                        break
            await until(lambda: dump(load_state(store, P)) == dump(log.state))
        reloaded = load_state(store, P, names=True)
        assert "T-39" in reloaded.recent
        assert not any(row.uow == "open" for row in read_rows(store, P))

    async def test_an_unresolved_unit_holds_its_data(self, store: LogStore) -> None:
        async with owned_log(store, replace(SETTINGS, snapshot_entries=5), UOW) as log:
            await append_next(log, "s0", at(1), at(1), [fragment("T", [1])])
            for n in range(60):
                await append_next(log, "s1", at(n), at(n), [])
            await until(lambda: (head := store.read_head(P)) is not None and head.snapshot > 5)
            await append_next(log, "s0", at(2), at(2), [fragment("T", [2], count=2)])
            [unit] = log.state.units.values()
        data = list(store.read_batches(P, unit.fragments[0], unit.fragments[0]))
        assert len(data) == 1

    async def test_is_the_state_of_one_moment_though_the_log_goes_on_among_its_parts(
        self, faulty: FaultyStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(snapshot, "PART_BYTES", 100)
        async with owned_log(faulty, replace(SETTINGS, snapshot_entries=10), UOW) as log:
            for n in range(1, 100):
                await append_next(log, "s0", at(n), at(n), [fragment(f"T-{n}", [n], count=1)])
            await until(lambda: (head := faulty.read_head(P)) is not None and head.snapshot > 0)
            head = faulty.read_head(P)
            assert head is not None
            [batch] = list(faulty.read_batches(P, head.snapshot, head.snapshot))
            meta = batch.entries[head.snapshot - batch.first_id].meta
            assert isinstance(meta, ControlMeta)
            assert meta.since is not None
            assert meta.since < head.snapshot
        assert [unit.uow for unit in load_state(faulty, P).units.values()] == [f"T-{n}" for n in range(1, 100)]

    async def test_a_crash_among_its_parts_leaves_the_one_before(
        self, faulty: FaultyStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(snapshot, "PART_BYTES", 100)
        async with owned_log(faulty, replace(SETTINGS, snapshot_entries=10), UOW) as log:
            for n in range(1, 30):
                await append_next(log, "s0", at(n), at(n), [fragment(f"T-{n}", [n], count=1)])
            await until(lambda: (head := faulty.read_head(P)) is not None and head.snapshot > 0)
            head = faulty.read_head(P)
            assert head is not None
            # The parts of the next one, as far as a crash lets them come.
            parts = list(snapshot.parts(snapshot.capture(log.state)))[:3]
            for part in parts:
                await log.write(lambda state, part=part: _part(state, part))  # type: ignore[misc]
        units = [f"T-{n}" for n in range(1, 30)]
        assert [unit.uow for unit in load_state(faulty, P).units.values()] == units
        async with owned_log(faulty, replace(SETTINGS, snapshot_entries=10), UOW) as log:
            assert [unit.uow for unit in log.state.units.values()] == units
            for n in range(30, 90):
                await append_next(log, "s0", at(n), at(n), [fragment(f"T-{n}", [n], count=1)])
            assert head.snapshot >= 0
            named = head.snapshot
            await until(lambda: (new := faulty.read_head(P)) is not None and new.snapshot > named)
        assert len(load_state(faulty, P).units) == 89

    async def test_of_the_release_before_is_read(self, store: LogStore) -> None:
        log = MainLog(store, Signatures(None))
        log.append(fragment("A", [1], count=1))
        log.snapshot()
        log.append(fragment("B", [1], count=1))
        assert [unit.uow for unit in load_state(store, P).units.values()] == ["A", "B"]


def _part(state: FoldedLog, data: bytes) -> list[Entry]:
    journal = Journal(state, 0)
    journal.write(EntryKind.CONTROL, ControlMeta(SNAPSHOT_PART), data=data)
    return journal.entries


class TestBacklog:
    async def test_appends_wait_at_the_bound_until_units_are_resolved(
        self, store: LogStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        apply = OutcomesLog(store)
        async with owned_log(store, replace(SETTINGS, backlog_units=2), UOW) as log:
            assert log.backlog() is None
            for n in (1, 2):
                await append_next(log, "s0", at(n), at(n), [fragment(f"T-{n}", [7], count=1)])
            waiting = asyncio.create_task(log.append("s0", at(3), at(3), [fragment("T-3", [7], count=1)], at(2)))
            async with asyncio.timeout(LIMIT):
                await append_next(log, "s0", at(2), at(2), [])  # sent again: recognised, and needs no room
            first = next(iter(log.state.units))
            apply.report(Outcome(first, UnitStatus.FAILED, 0, "bad"))
            await until(lambda: "the first that failed is T-1" in str(log.backlog()))
            assert not waiting.done()
            assert log.state.positions["s0"] == at(2), "what waits is not folded"
            assert "backlog is full" in caplog.text
            assert (await ask(store, "discard", "T-1"))["result"] == "ok"
            async with asyncio.timeout(LIMIT):
                await waiting
        assert units_of(store) == ["T-1", "T-2", "T-3"]

    async def test_what_is_collected_never_waits_for_itself(self, store: LogStore) -> None:
        async with owned_log(store, replace(SETTINGS, backlog_units=1), UOW) as log, asyncio.timeout(LIMIT):
            for n in range(1, 5):
                await append_next(log, "s0", at(n), at(n), [fragment(f"T-{n}", [n])])
            await append_next(log, "s0", at(5), at(5), [fragment("T-1", [9], count=2)])

    async def test_a_stop_does_not_wait_for_it(self, store: LogStore) -> None:
        async with asyncio.timeout(LIMIT):
            async with owned_log(store, replace(SETTINGS, backlog_units=1), UOW) as log:
                await append_next(log, "s0", at(1), at(1), [fragment("T-1", [7], count=1)])
                waiting = asyncio.create_task(log.append("s0", at(2), at(2), [], at(1)))
                await until(lambda: log.backlog() is not None)
            with pytest.raises(LogUnavailableError, match="has stopped"):
                await waiting


async def test_head_has_the_figures_of_the_log_and_of_reading(store: LogStore) -> None:
    settings = LogSettings(table="t", owner="w", enabled=True, put_interval=0, heartbeat=0.02)
    async with owned_log(store, settings, UowSettings()) as owner:
        owner.report(ReadingReport(frozenset({"s-0", "s-1"}), {"s-0": 2.0}))
        await owner.append("s-0", Position(1), Position(1), [fragment("T", [1], count=1), fragment("half", [2])])

        def told() -> LogSummary | None:
            head = store.read_head(settings.partition)
            return None if head is None else from_text(head.summary)

        await until(lambda: (found := told()) is not None and found.in_progress)
        found = told()
        assert found is not None
        assert (found.in_progress, found.collecting, found.shards) == (1, 1, 2)
        assert [shard.shard for shard in found.unread] == ["s-1", "s-0"]
        assert found.mark.next_id <= owner.durable_id
