"""The owner: nothing acknowledged before it is durable, nothing collected twice, one owner at a time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from kainite.base.errors import LogError, LogFencedError, LogHeldError, LogRequestError, LogUnavailableError
from kainite.base.position import BEFORE_ALL, Position
from kainite.base.process_identity import ProcessIdentity
from kainite.log.client import ReadingReport
from kainite.log.contract import LogHead, LogStore, Slot
from kainite.log.format.entry import (
    SNAPSHOT_PART,
    Batch,
    ControlMeta,
    Entry,
    EntryKind,
    Outcome,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.loading import load_state
from kainite.log.state.snapshot import dump
from kainite.log.state.summary import LogSummary, from_text
from kainite.log.views.unit_table import read_rows
from kainite.owner.mount import mount
from kainite.settings import LogSettings, UowSettings
from kainite.store.memory import MemoryStore
from kainite.uow.signature import Signatures
from support.log_builders import fragment
from support.log_members import members
from support.main_log import MainLog
from support.next_append import append_next
from support.outcomes_log import OutcomesLog
from support.owned_log import owned_log
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


def units_of(store: LogStore) -> list[str]:
    return [name for batch in store.read_batches(P, 0, strong=True) for name in _units(batch)]


def _units(batch: Batch) -> list[str]:
    return [entry.meta.uow for entry in batch.entries if isinstance(entry.meta, UnitMeta)]


def mount_between_heartbeats(store: LogStore) -> None:
    """Mounts under the owner's name; tries again when a heartbeat came between the read and the claim."""
    while True:
        with contextlib.suppress(LogHeldError):
            mount(store, P, SETTINGS.owner, 2.0)
            return


class FaultyStore(MemoryStore):
    """A real store whose connection the test breaks: before a put, or between the put and its reply."""

    def __init__(self) -> None:
        super().__init__()
        self.fail_before = 0
        self.fail_after = 0
        self.gate = threading.Event()
        self.gate.set()
        self.batches = 0
        self.waiting = 0
        self.fail_swaps = 0
        self.broken = False

    def swap_head(self, partition: str, new: LogHead, expected: LogHead | None) -> bool:
        if self.fail_swaps:
            self.fail_swaps -= 1
            raise LogUnavailableError("throttled")
        return super().swap_head(partition, new, expected)

    def read_requests(self, partition: str) -> Sequence[tuple[str, Mapping[str, str]]]:
        if self.broken:
            raise ZeroDivisionError
        return super().read_requests(partition)

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        self.waiting += 1
        assert self.gate.wait(LIMIT)
        self.waiting -= 1
        if self.fail_before:
            self.fail_before -= 1
            raise LogUnavailableError("lost before the store")
        in_way = super().put_batch(partition, batch, nonce)
        self.batches += 1
        if self.fail_after:
            self.fail_after -= 1
            raise LogUnavailableError("the reply was lost")
        return in_way


@pytest.fixture
def faulty() -> FaultyStore:
    return FaultyStore()


class TestAppend:
    async def test_is_durable_when_it_returns(self, store: LogStore) -> None:
        async with owned_log(store, SETTINGS, UOW) as log:
            await append_next(log, "s0", at(1), at(5), [fragment("T", [1], count=1)])
            assert units_of(store) == ["T"]
            assert await log.position("s0") == at(5)

    async def test_again_is_recognised(self, store: LogStore) -> None:
        async with owned_log(store, SETTINGS, UOW) as log:
            for _ in range(2):
                await append_next(log, "s0", at(1), at(5), [fragment("T", [1])])
            await append_next(log, "s0", at(6), at(6), [fragment("T", count=1)])
        assert units_of(store) == ["T"]

    async def test_again_after_a_restart_is_recognised(self, store: LogStore) -> None:
        async with owned_log(store, SETTINGS, UOW) as log:
            await append_next(log, "s0", at(1), at(5), [fragment("T", [1])])
        async with owned_log(store, SETTINGS, UOW) as log:
            await append_next(log, "s0", at(1), at(5), [fragment("T", [1])])
            assert log.state.open["T"].count == 1

    async def test_that_overlaps_is_refused(self, store: LogStore) -> None:
        async with owned_log(store, SETTINGS, UOW) as log:
            await append_next(log, "s0", at(1), at(5), [])
            with pytest.raises(LogRequestError, match="read on behind its position"):
                await append_next(log, "s0", at(4), at(8), [])

    async def test_many_at_once_share_batches(self, faulty: FaultyStore) -> None:
        async with owned_log(faulty, SETTINGS, UOW) as log:
            appends = (log.append(f"s{n}", at(1), at(1), [fragment(f"T-{n}", [n], count=1)]) for n in range(100))
            await asyncio.gather(*appends)
        assert sorted(units_of(faulty)) == sorted(f"T-{n}" for n in range(100))
        assert faulty.batches < 10

    async def test_waits_while_the_queue_is_full(self, faulty: FaultyStore) -> None:
        small = replace(SETTINGS, queue_bytes=500)
        async with owned_log(faulty, small, UOW) as log:
            faulty.gate.clear()
            appends = [asyncio.create_task(log.append(f"s{n}", at(1), at(1), [])) for n in range(20)]
            await until(lambda: faulty.waiting == 1 and len(log.state.positions) > 1)
            assert len(log.state.positions) == 3  # of about 200 bytes each: the third begins below the bound
            faulty.gate.set()
            async with asyncio.timeout(LIMIT):
                await asyncio.gather(*appends)
            assert len(log.state.positions) == 20

    async def test_larger_than_an_item(self, store: LogStore) -> None:
        async with owned_log(store, SETTINGS, UOW) as log:
            await append_next(log, "s0", at(1), at(1), [fragment("T", range(20_000), count=20_000)])
        assert units_of(store) == ["T"]
        assert load_state(store, P).units[0].written == frozenset(range(20_000))


class TestFaults:
    async def test_a_store_that_does_not_answer_is_asked_again(self, faulty: FaultyStore) -> None:
        async with owned_log(faulty, SETTINGS, UOW) as log:
            faulty.fail_before = 2
            await append_next(log, "s0", at(1), at(1), [fragment("T", [1], count=1)])
        assert units_of(faulty) == ["T"]

    async def test_a_lost_reply_doubles_nothing(self, faulty: FaultyStore) -> None:
        async with owned_log(faulty, SETTINGS, UOW) as log:
            faulty.fail_after = 3
            for n in range(1, 4):
                await append_next(log, "s0", at(n), at(n), [fragment(f"T-{n}", [n], count=1)])
        assert units_of(faulty) == ["T-1", "T-2", "T-3"]

    async def test_units_of_a_record_with_the_lowest_position_are_kept(self, store: LogStore) -> None:
        async with owned_log(store, SETTINGS, UOW) as log:
            await append_next(log, "s0", BEFORE_ALL, BEFORE_ALL, [fragment("T", [1], count=1)])
        assert units_of(store) == ["T"]

    async def test_a_cancelled_append_is_recognised_when_it_comes_again(self, faulty: FaultyStore) -> None:
        async with owned_log(faulty, SETTINGS, UOW) as log:
            faulty.gate.clear()
            append = asyncio.create_task(log.append("s0", at(1), at(1), [fragment("T", [1], count=1)]))
            await until(lambda: faulty.waiting == 1)
            append.cancel()
            again = asyncio.create_task(log.append("s0", at(1), at(1), [fragment("T", [1], count=1)]))
            durable: list[int] = []
            again.add_done_callback(lambda _: durable.append(faulty.batches))
            faulty.gate.set()
            async with asyncio.timeout(LIMIT):
                await again
            assert durable == [1], "acknowledged before it is durable"
        assert units_of(faulty) == ["T"]

    async def test_closing_leaves_what_was_not_acknowledged(self, faulty: FaultyStore) -> None:
        async with owned_log(faulty, SETTINGS, UOW) as log:
            faulty.fail_before = 1000
            append = asyncio.create_task(log.append("s0", at(1), at(1), []))
            await until(lambda: faulty.fail_before < 1000)
        with pytest.raises(LogUnavailableError, match="has stopped"):
            await append

    async def test_a_full_queue_lets_nobody_wait_for_an_owner_that_has_failed(self, faulty: FaultyStore) -> None:
        async with owned_log(faulty, replace(SETTINGS, queue_bytes=1), UOW) as log:
            faulty.gate.clear()
            appends = [asyncio.create_task(log.append(f"s{n}", at(1), at(1), [])) for n in range(3)]
            mount(faulty, P, SETTINGS.owner, 2.0)
            async with asyncio.timeout(LIMIT):
                results = await asyncio.gather(*appends, return_exceptions=True)
            assert [type(result) for result in results] == [LogFencedError] * 3
            faulty.gate.set()

    async def test_a_lease_that_ran_out_is_renewed_however_often_the_store_must_be_asked(
        self, faulty: FaultyStore
    ) -> None:
        now = [0.0]
        async with owned_log(faulty, replace(SETTINGS, heartbeat=99), UOW, clock=lambda: now[0]) as log:
            now[0] = 100.0
            faulty.fail_swaps = 2
            await append_next(log, "s0", at(1), at(1), [fragment("T", [1], count=1)])
        assert units_of(faulty) == ["T"]

    async def test_an_error_that_nobody_foresaw_ends_the_owner(self, faulty: FaultyStore) -> None:
        opened = owned_log(faulty, SETTINGS, UOW)
        log = await opened.__aenter__()
        faulty.broken = True
        async with asyncio.timeout(LIMIT):
            assert "ZeroDivisionError" in str(await log.failed())
        with pytest.raises(ZeroDivisionError):
            await opened.__aexit__(None, None, None)

    async def test_a_decision_that_breaks_after_it_has_folded_an_entry_ends_the_owner(self, store: LogStore) -> None:
        def broken(state: FoldedLog) -> Sequence[Entry]:
            Journal(state, 0).write(EntryKind.STATUS, StatusMeta())
            raise ZeroDivisionError

        async with owned_log(store, SETTINGS, UOW) as log, asyncio.timeout(LIMIT):
            with pytest.raises(ZeroDivisionError):
                await log.write(broken)
            with pytest.raises(LogError, match="ZeroDivisionError"):
                await append_next(log, "s0", at(1), at(1), [fragment("T", [1], count=1)])
            assert "ZeroDivisionError" in str(await log.failed())
        assert units_of(store) == []

    async def test_a_decision_that_is_refused_before_it_folds_anything_ends_nothing(self, store: LogStore) -> None:
        def refused(state: FoldedLog) -> Sequence[Entry]:
            raise LogRequestError("no")

        async with owned_log(store, SETTINGS, UOW) as log, asyncio.timeout(LIMIT):
            with pytest.raises(LogRequestError, match="no"):
                await log.write(refused)
            await append_next(log, "s0", at(1), at(1), [fragment("T", [1], count=1)])
        assert units_of(store) == ["T"]


class TestTwoOwners:
    async def test_the_older_is_fenced_and_says_so(self, store: LogStore) -> None:
        async with owned_log(store, replace(SETTINGS, heartbeat=99), UOW) as old:
            await append_next(old, "s0", at(1), at(1), [fragment("T-1", [1], count=1)])
            await asyncio.to_thread(mount, store, P, SETTINGS.owner, 2.0)
            with pytest.raises(LogFencedError, match="a daemon goes on as its client"):
                await append_next(old, "s0", at(2), at(2), [fragment("T-2", [2], count=1)])
            assert isinstance(await old.failed(), LogFencedError)
            with pytest.raises(LogFencedError):
                await append_next(old, "s0", at(3), at(3), [])
        assert units_of(store) == ["T-1"]

    async def test_a_batch_that_lands_in_a_truncated_place_is_not_acknowledged(self, faulty: FaultyStore) -> None:
        """Covers the one case that the store's condition cannot see: only the lease does."""
        now = [0.0]
        async with owned_log(faulty, replace(SETTINGS, heartbeat=99), UOW, clock=lambda: now[0]) as old:
            await append_next(old, "s0", at(1), at(1), [fragment("T-1", [1], count=1)])
            faulty.gate.clear()
            late = asyncio.create_task(old.append("s0", at(2), at(2), [fragment("late", [2], count=1)], at(1)))
            await until(lambda: faulty.waiting == 1)
            newer = mount(faulty, P, SETTINGS.owner, 2.0)
            for first in (2, 3):
                batch = Batch(first, newer.generation, 0, (Entry(EntryKind.STATUS, StatusMeta()),))
                assert MemoryStore.put_batch(faulty, P, batch, f"n{first}") is None
            newer.renew(low_water_mark=3)
            assert faulty.truncate(P, 3) == 2
            now[0] = 100.0
            faulty.gate.set()
            with pytest.raises(LogFencedError):
                await late
        assert "late" not in [name for batch in faulty.read_batches(P, 3) for name in _units(batch)]

    async def test_an_idle_owner_notices_by_its_heartbeat(self, store: LogStore) -> None:
        async with owned_log(store, SETTINGS, UOW) as old:
            await asyncio.to_thread(mount_between_heartbeats, store)
            async with asyncio.timeout(LIMIT):
                assert isinstance(await old.failed(), LogFencedError)

    async def test_one_worker_id_on_two_hosts_has_one_owner_and_an_error_in_the_log(
        self, store: LogStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with owned_log(store, SETTINGS, UOW, process=ProcessIdentity("one")) as log, members(store) as others:
            await others.join(SETTINGS.owner, reached=False)
            await until(lambda: "another daemon runs under this worker id" in caplog.text)
            for n in range(1, 4):
                await append_next(log, "s0", at(n), at(n), [fragment(f"T-{n}", [n], count=1)])
            with pytest.raises(LogHeldError, match="under our own name"):
                mount(store, P, SETTINGS.owner, 2.0, process=ProcessIdentity("two"))
        assert units_of(store) == ["T-1", "T-2", "T-3"]

    async def test_a_released_log_is_taken_at_once(self, store: LogStore) -> None:
        async with owned_log(store, replace(SETTINGS, lease=1000), UOW):
            pass
        async with asyncio.timeout(LIMIT), owned_log(store, OTHER, UOW) as log:
            assert log.generation == 2


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
