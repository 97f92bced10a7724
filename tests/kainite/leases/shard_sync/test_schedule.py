"""The times of shard sync, audit and cleanup, and the worker that runs them (docs/kcl.md, *Shard sync*)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from kainite.base.checkpoint import SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import LogUnavailableError, StreamUnavailableError
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import MAX_HASH_KEY, HashRange
from kainite.leases.holding.held_leases import CurrentSettings
from kainite.leases.shard_sync.schedule import ShardSyncSchedule
from kainite.leases.shard_sync.stream_sync import SURE_AFTER
from kainite.leases.stance import Stance
from kainite.leases.streams import ReadStream, only
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.observe.meter import SILENT
from kainite.settings import LeaseSettings
from support.keepers import FIRST, SECOND, STREAM, Clock
from support.kinesis_double import KinesisDouble, stream_of

HALF = MAX_HASH_KEY // 2
Look = Callable[..., Awaitable[bool]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def settings(stream: StreamClient) -> CurrentSettings:
    return CurrentSettings(LeaseSettings("app", "t", "me"), STREAM, only(stream, STREAM))


@pytest.fixture
def look(table: LeaseTable, stream: StreamClient, settings: CurrentSettings, clock: Clock) -> Look:
    """Returns a function that runs what is due, at the time when it is due; the stance stays that of the first call."""
    made: list[ShardSyncSchedule] = []

    async def look(leader: str | None = "me", stance: Stance = Stance.SHARE) -> bool:
        if not made:
            made.append(ShardSyncSchedule(table, settings, lambda: stance, clock, SILENT))
        clock.time = max(clock.time, made[0].due)
        return await made[0].run_due(table.scan(), leader)

    return look


def set_stream(settings: CurrentSettings, **values: bool) -> None:
    """Replaces the stream's settings, as a reload does."""
    settings.stream = replace(STREAM, **values)  # type: ignore[arg-type]
    settings.streams = {key: replace(read, settings=settings.stream) for key, read in settings.streams.items()}


def keys(table: LeaseTable) -> set[str]:
    return {lease.key for lease in table.scan()}


async def test_a_hole_leads_to_a_sync_when_it_has_been_seen_three_times(look: Look, table: LeaseTable) -> None:
    assert await look(None)
    table.delete(SECOND)
    assert [await look() for _ in range(SURE_AFTER)] == [False, False, True]
    assert keys(table) == {FIRST, SECOND}


async def test_who_does_not_lead_syncs_an_empty_table_only(look: Look, table: LeaseTable) -> None:
    assert await look("other")
    assert keys(table) == {FIRST, SECOND}
    table.delete(SECOND)
    assert not any([await look("other") for _ in range(SURE_AFTER + 1)])
    assert keys(table) == {FIRST}


async def test_the_first_look_of_a_leader_is_a_sync_unless_leases_are_to_be_enough(
    look: Look, table: LeaseTable, settings: CurrentSettings, double: KinesisDouble
) -> None:
    table.put_new(Lease(FIRST, "me", hash_range=HashRange(0, HALF)))
    set_stream(settings, skip_sync_if_leases=True)
    assert not await look()
    assert double.count("ListShards") == 0


async def test_a_leader_that_begins_beside_leases_syncs_at_once(look: Look, table: LeaseTable) -> None:
    table.put_new(Lease(FIRST, "me", hash_range=HashRange(0, HALF)))
    assert await look()
    assert keys(table) == {FIRST, SECOND}


async def test_leases_without_hash_keys_are_given_them(look: Look, table: LeaseTable, double: KinesisDouble) -> None:
    for key in (FIRST, SECOND):
        table.put_new(Lease(key, "me"))
    await look()
    await look()
    ranges = {lease.key: lease.hash_range for lease in table.scan()}
    assert ranges == {key: HashRange(shard.start, shard.end) for key, shard in double.shards.items()}


async def test_an_assigned_fleet_leaves_the_table_to_its_leader(
    look: Look, table: LeaseTable, double: KinesisDouble
) -> None:
    assert not await look(None, Stance.ASSIGNED)
    assert keys(table) == set()
    assert double.count("ListShards") == 0


async def test_completed_leases_go_whoever_leads_and_garbage_goes_by_the_leader(look: Look, table: LeaseTable) -> None:
    await look()
    table.put_new(Lease("parent", checkpoint=SHARD_END, children=frozenset({"child"})))
    table.put_new(Lease("child", checkpoint=Checkpoint("5"), hash_range=HashRange(0, 1)))
    table.put_new(Lease("gone", checkpoint=SHARD_END))
    assert await look("other")
    assert keys(table) == {FIRST, SECOND, "child", "gone"}
    assert await look("me")
    assert keys(table) == {FIRST, SECOND, "child"}


async def test_an_ended_shard_that_is_still_listed_keeps_its_lease(
    look: Look, table: LeaseTable, double: KinesisDouble
) -> None:
    await look()
    first = table.get(FIRST)
    assert first is not None
    table.checkpoint(first, SHARD_END)
    await look()
    assert keys(table) == {FIRST, SECOND}


async def test_nothing_is_cleaned_up_where_that_is_disabled(
    look: Look, table: LeaseTable, settings: CurrentSettings
) -> None:
    settings.leases = replace(settings.leases, cleanup_completed=False)
    await look()
    table.put_new(Lease("gone", checkpoint=SHARD_END))
    await look()
    assert "gone" in keys(table)


async def test_a_listing_that_fails_is_tried_again_soon_and_then_at_the_next_look(
    look: Look, table: LeaseTable, settings: CurrentSettings, double: KinesisDouble, clock: Clock
) -> None:
    settings.stream = replace(STREAM, list_shards_backoff=1.5, list_shards_tries=2, shard_sync=60.0)
    double.fail("ListShards", "LimitExceededException", times=3)
    with pytest.raises(StreamUnavailableError):
        await look()
    table.put_new(Lease(FIRST, "me", hash_range=HashRange(0, HALF)))
    began = clock.time
    await look()
    await look()
    assert clock.time == began + 1.5
    await look()
    assert clock.time == began + 61.5
    assert keys(table) == {FIRST, SECOND}


async def test_a_stream_that_is_not_synced_is_told_since_its_first_failure_until_it_is_synced(
    table: LeaseTable, settings: CurrentSettings, double: KinesisDouble, clock: Clock
) -> None:
    settings.stream = replace(STREAM, list_shards_backoff=1.5, list_shards_tries=9)
    schedule = ShardSyncSchedule(table, settings, lambda: Stance.SHARE, clock, SILENT)
    table.put_new(Lease(FIRST, "me", hash_range=HashRange(0, HALF)))
    double.fail("ListShards", "LimitExceededException", times=2)
    told: list[tuple[float, bool]] = []
    for _ in range(3):
        clock.time = max(clock.time, schedule.due)
        await schedule.run_due(table.scan(), "me")
        told += [(failure.since, failure.passes) for failure in schedule.unsynced.values()]

    assert len(told) == 2
    assert len(set(told)) == 1
    assert told[0][1]
    assert schedule.unsynced == {}


async def test_who_does_not_lead_tells_of_no_stream(
    table: LeaseTable, settings: CurrentSettings, double: KinesisDouble, clock: Clock
) -> None:
    schedule = ShardSyncSchedule(table, settings, lambda: Stance.SHARE, clock, SILENT)
    table.put_new(Lease(FIRST, "me", hash_range=HashRange(0, HALF)))
    double.fail("ListShards", "LimitExceededException")
    await schedule.run_due(table.scan(), "me")
    assert schedule.unsynced.keys() == {""}
    clock.time = max(clock.time, schedule.due)
    await schedule.run_due(table.scan(), "other")
    assert schedule.unsynced == {}


async def test_a_listing_in_the_middle_of_a_split_is_not_gone_by(
    look: Look, table: LeaseTable, settings: CurrentSettings, double: KinesisDouble
) -> None:
    left, right = double.split(FIRST)
    double.shards[FIRST].open = True
    with pytest.raises(StreamUnavailableError, match="under way"):
        await look()
    set_stream(settings, ignore_unexpected_children=True)
    await look()
    assert keys(table) == {FIRST, SECOND}
    assert {left, right}.isdisjoint(keys(table))
    assert {lease.checkpoint for lease in table.scan()} == {TRIM_HORIZON}


async def test_a_stream_that_is_added_while_leases_are_deleted_is_synced_at_the_next_run(
    look: Look, table: LeaseTable, double: KinesisDouble, settings: CurrentSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holds where SIGHUP comes while the table is asked: the run goes on with the streams that it began with."""
    await look()
    settings.leases = replace(settings.leases, cleanup_completed=True)
    for key in (FIRST, SECOND):
        table.delete(key)
    table.put_new(Lease(FIRST, checkpoint=SHARD_END, children=frozenset({SECOND})))
    table.put_new(Lease(SECOND, checkpoint=Checkpoint("1"), parents=frozenset({FIRST})))
    delete, added = table.delete, "1:added:1"
    with stream_of(double) as second:
        second.id = added

        def adding(key: str) -> None:
            settings.streams = {**settings.streams, **only(second, STREAM)}
            delete(key)

        monkeypatch.setattr(table, "delete", adding)
        assert await look()
        assert {lease.stream for lease in table.scan()} == {""}
        assert await look()
    assert {lease.stream for lease in table.scan()} == {"", added}


class Beginnings:
    """Notes the beginnings of streams, or fails to."""

    def __init__(self) -> None:
        self.noted: list[tuple[Checkpoint, float | None]] = []
        self.fails = False

    async def __call__(self, initial: Checkpoint, timestamp: float | None) -> float:
        if self.fails:
            raise LogUnavailableError("no owner")
        self.noted.append((initial, timestamp))
        return 17.0


class TestAStreamWhoseLeasesAnotherWorkerCreates:
    """With units of work the log awaits it before: a Java leader creates leases and tells the log nothing."""

    ADDED = "1:added:1"

    @pytest.fixture
    def beginnings(self, settings: CurrentSettings, stream: StreamClient) -> Beginnings:
        beginnings = Beginnings()
        settings.streams = {self.ADDED: ReadStream(stream, STREAM, beginnings)}
        return beginnings

    @pytest.mark.parametrize(("stance", "leader"), [(Stance.ASSIGNED, "me"), (Stance.SHARE, "java")])
    async def test_it_is_awaited_until_it_has_leases(
        self, look: Look, table: LeaseTable, beginnings: Beginnings, double: KinesisDouble, stance: Stance, leader: str
    ) -> None:
        table.put_new(Lease(f"1:other:1:{FIRST}", "java"))
        assert not await look(leader, stance)
        assert not await look(leader, stance)
        assert beginnings.noted == [(TRIM_HORIZON, None)] * 2
        table.put_new(Lease(f"{self.ADDED}:{FIRST}", "java"))
        await look(leader, stance)
        assert len(beginnings.noted) == 2
        assert double.count("ListShards") == 0

    async def test_a_log_that_does_not_note_it_is_asked_again_soon(
        self, look: Look, table: LeaseTable, beginnings: Beginnings, clock: Clock, settings: CurrentSettings
    ) -> None:
        settings.stream = replace(STREAM, list_shards_backoff=1.5, shard_sync=60.0)
        table.put_new(Lease(f"1:other:1:{FIRST}", "java"))
        beginnings.fails = True
        await look("java")
        beginnings.fails, began = False, clock.time
        await look("java")
        assert (clock.time, beginnings.noted) == (began + 1.5, [(TRIM_HORIZON, None)])

    async def test_a_worker_that_is_cut_off_from_the_log_does_not_wait_for_it(
        self, look: Look, table: LeaseTable, beginnings: Beginnings
    ) -> None:
        table.put_new(Lease(f"1:other:1:{FIRST}", "java"))
        await look("java", Stance.ABSTAIN)
        assert beginnings.noted == []

    async def test_a_stream_alone_is_not_awaited(
        self, look: Look, beginnings: Beginnings, settings: CurrentSettings, stream: StreamClient
    ) -> None:
        settings.streams = {"": ReadStream(stream, STREAM, beginnings)}
        await look(None, Stance.ASSIGNED)
        assert beginnings.noted == []
