"""The names of dispatched units: at least the last ones are recognised, whatever crashes, in bounded memory."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kainite.base.errors import LogFencedError, LogUnavailableError
from kainite.base.position import Position
from kainite.log.contract import NAMES_BYTES, LogStore
from kainite.log.format.entry import Entry, EntryKind, UnitMeta, UnitStatus
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.loading import load_state
from kainite.owner import names
from kainite.owner.names import deletable, next_move
from kainite.owner.owner import LogOwner
from kainite.settings import LogSettings, UowOrder, UowSettings
from kainite.store.memory import MemoryStore
from support.log_builders import fragment
from support.next_append import append_next
from support.owned_log import owned_log
from support.waiting import until

P = "0"
SETTINGS = LogSettings(
    table="t", owner="a", enabled=True, lease=60.0, heartbeat=20.0, put_interval=0.0, poll=0.01, snapshot_entries=10
)


def uow(number: int) -> str:
    return f"T-{number}"


class Kept:
    """The owner's state, what is durable of it, and the store's items; may lose the former at any step."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.store = MemoryStore()
        self.state = FoldedLog()
        self.snapshot = snapshot.dump(self.state)
        self.entries: list[Entry] = []
        self.generation = 1
        self.dispatched = 0

    def write(self, kind: EntryKind, meta: object) -> None:
        journal = Journal(self.state, 0)
        journal.write(kind, meta)  # type: ignore[arg-type]
        self.entries += journal.entries

    def dispatch(self, count: int) -> None:
        for _ in range(count):
            self.write(EntryKind.UNIT, UnitMeta(uow(self.dispatched), 0))
            self.dispatched += 1

    def move(self, crash: int) -> None:
        """Takes all steps; dies after ``crash`` effects."""
        effects = 0
        while (move := next_move(self.state.recent, self.window, self.generation)) is not None:
            if move.item is not None:
                self.store.put_names(P, *move.item)
                if (effects := effects + 1) > crash:
                    return self.restart()
            self.write(EntryKind.CONTROL, move.meta)
            if (effects := effects + 1) > crash:
                return self.restart()
        self.store.delete_names(P, list(self.state.recent.stale))
        self.state.recent.stale.clear()
        return None

    def restart(self) -> None:
        before = self.state
        self.generation += 1
        self.state = snapshot.load(self.snapshot)
        for entry in self.entries:
            self.state.apply(self.state.next_id, entry, 0)
        self.state.recent.recall(self.store.read_names(P))
        assert snapshot.dump(self.state) == snapshot.dump(before)
        self.check()

    def take_snapshot(self) -> None:
        self.snapshot = snapshot.dump(self.state)
        self.entries.clear()

    def check(self) -> None:
        first = self.dispatched - self.window
        assert all(uow(number) in self.state.recent for number in range(max(0, first), self.dispatched))
        assert uow(self.dispatched) not in self.state.recent


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("dispatch"), st.integers(1, 30)),
        st.tuples(st.just("move"), st.integers(0, 12)),
        st.tuples(st.sampled_from(["snapshot", "restart"]), st.just(0)),
    ),
    max_size=25,
)


@settings(deadline=None)
@given(st.sampled_from([0, 1, 5, 16, 40, 100]), STEPS)
def test_the_last_names_are_known_whatever_crashes_and_no_item_is_left(
    window: int, steps: list[tuple[str, int]]
) -> None:
    kept = Kept(window)
    for what, amount in steps:
        match what:
            case "dispatch":
                kept.dispatch(amount)
            case "move":
                kept.move(amount)
            case "snapshot":
                kept.take_snapshot()
            case _:
                kept.restart()
        kept.check()
    kept.move(10**6)
    assert len(kept.state.recent) <= window + 2 * max(1, window // 16)
    assert [key for key, _ in kept.store.read_names(P)] == [segment.key for segment in kept.state.recent.segments]


def test_a_segment_fits_its_item_and_no_step_is_larger() -> None:
    kept = Kept(10**9)
    kept.dispatch(names.SEGMENT + 1)
    move = next_move(kept.state.recent, kept.window, 1)
    assert move is not None
    assert move.item is not None
    assert len(move.item[1]) == NAMES_BYTES
    kept.window = 0
    move = next_move(kept.state.recent, kept.window, 1)
    assert move is not None
    assert (move.item, move.meta.count) == (None, names.SEGMENT)


async def bring(log: LogOwner, position: int, number: int, *, numbered: bool = False) -> None:
    """Appends a whole unit."""
    at = Position(position)
    await append_next(
        log, "s0", at, at, [fragment(uow(number), [number], count=1, number=number + 1 if numbered else None)]
    )


async def rounds(log: LogOwner) -> None:
    """Waits until the names before this moment have moved."""
    before = log.state.next_id
    await until(lambda: log.state.snapshot_since > before)


class TestSentAgain:
    @pytest.mark.parametrize("restart", [False, True])
    async def test_long_ago_is_recognised_by_name(self, store: LogStore, restart: bool) -> None:
        rules, positions = UowSettings(dedup_window=60), itertools.count(1)
        async with owned_log(store, SETTINGS, rules) as log:
            for number in range(60):
                await bring(log, next(positions), number)
            if not restart:
                await self._again(log, positions)
        if restart:
            async with owned_log(store, SETTINGS, rules) as log:
                await self._again(log, positions)

    async def _again(self, log: LogOwner, positions: itertools.count[int]) -> None:
        for number in range(60):
            await bring(log, next(positions), number)
        assert [unit.uow for unit in log.state.units.values()] == [uow(number) for number in range(60)]
        assert len(log.state.recent.segments) > 3

    async def test_at_any_time_is_recognised_by_its_number(self, store: LogStore) -> None:
        """Sends 100 units again, of which the log remembers no name; before, 100 failed units came of it."""
        rules, positions = UowSettings(order=UowOrder.DENSE, dedup_window=0), itertools.count(1)
        async with owned_log(store, SETTINGS, rules) as log:
            for number in range(100):
                await bring(log, next(positions), number, numbered=True)
            while log.state.recent.forgotten is None or log.state.recent.forgotten < 100:
                at = Position(next(positions))
                await append_next(log, "s0", at, at, [])
            for number in range(100):
                await bring(log, next(positions), number, numbered=True)
            await bring(log, next(positions), 100, numbered=True)
            assert [unit.uow for unit in log.state.units.values()] == [uow(number) for number in range(101)]
            assert all(unit.status is UnitStatus.IN_PROGRESS for unit in log.state.units.values())

    async def test_beyond_the_window_with_a_number_is_refused_where_numbers_do_not_order(self, store: LogStore) -> None:
        rules, positions = UowSettings(dedup_window=0), itertools.count(1)
        async with owned_log(store, SETTINGS, rules) as log:
            await bring(log, next(positions), 0, numbered=True)
            while log.state.recent.forgotten is None:
                at = Position(next(positions))
                await append_next(log, "s0", at, at, [])
            await bring(log, next(positions), 0, numbered=True)
            await bring(log, next(positions), 5, numbered=True)
            first, again, other = log.state.units.values()
            assert (first.status, other.status) == (UnitStatus.IN_PROGRESS, UnitStatus.IN_PROGRESS)
            assert again.status is UnitStatus.FAILED
            assert "number 1 is that of a unit whose name is not remembered any more" in str(again.cause)


class FailingStore(MemoryStore):
    """A store that does not answer when names are written or deleted, every other time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = itertools.count()

    def put_names(self, partition: str, segment: str, names: bytes) -> None:
        super().put_names(partition, segment, names)
        self._fail()

    def delete_names(self, partition: str, keys: object) -> None:
        super().delete_names(partition, keys)  # type: ignore[arg-type]
        self._fail()

    def _fail(self) -> None:
        if next(self.asked) % 2 == 0:
            raise LogUnavailableError("the reply was lost")


async def test_a_store_that_does_not_answer_delays_the_names_and_loses_none() -> None:
    store = FailingStore()
    async with owned_log(store, SETTINGS, UowSettings(dedup_window=30)) as log:
        for number in range(100):
            await bring(log, number + 1, number)
        await until(lambda: len(log.state.recent.segments) > 3)
        segments = {segment.key for segment in log.state.recent.segments}
    state = load_state(store, P, names=True)
    assert all(uow(number) in state.recent for number in range(70, 100))
    assert segments & {key for key, _ in store.read_names(P)}


async def test_items_whose_names_have_left_are_deleted() -> None:
    store = MemoryStore()
    async with owned_log(store, SETTINGS, UowSettings(dedup_window=30)) as log:
        for number in range(100):
            await bring(log, number + 1, number)
        await until(lambda: len(log.state.recent.segments) > 3)
        first = {key for key, _ in store.read_names(P)}
        assert first
        for number in range(100, 200):
            await bring(log, number + 1, number)
        await until(lambda: first.isdisjoint(segment.key for segment in log.state.recent.segments))
        await until(lambda: first.isdisjoint(key for key, _ in store.read_names(P)))


class OvertakenStore(MemoryStore):
    """A store at which something happens while an owner loads, between the entries and the names' items."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] | None = None

    def read_names(self, partition: str) -> Iterator[tuple[str, bytes]]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().read_names(partition)


@pytest.mark.parametrize("window", [640, 16])
async def test_an_owner_that_is_overtaken_while_it_loads_deletes_nothing_of_its_successor(window: int) -> None:
    # With the small window the successor has deleted segments that the first one has read of.
    store, rules = OvertakenStore(), UowSettings(dedup_window=window)

    async def bring_some(first: int, segments: bool) -> None:
        async with owned_log(store, SETTINGS, rules) as log:
            for number in range(first, first + 80):
                await bring(log, number + 1, number)
            await until(lambda: bool(log.state.recent.segments) or not segments)

    await bring_some(0, segments=window == 16)
    store.meanwhile = lambda: asyncio.run(bring_some(80, segments=True))
    with pytest.raises(LogFencedError):
        async with owned_log(store, SETTINGS, rules):
            pass
    assert uow(159) in load_state(store, P, names=True).recent


def test_items_of_a_later_owner_are_not_deleted() -> None:
    assert deletable({"00/1", "00/3", "05/2"}, 2) in {("00/1", "05/2"), ("05/2", "00/1")}


async def test_adopting_a_stream_drops_positions_whose_stream_was_never_noted() -> None:
    store = MemoryStore()
    async with owned_log(store, SETTINGS, UowSettings()) as log:
        await bring(log, 100, 0)
        await log.collect_from("the new stream", adopt=True)
        assert await log.position("s0") is None
        await bring(log, 5, 1)
    state = load_state(store, P)
    assert (state.stream, state.positions) == ("the new stream", {"s0": Position(5)})
    assert [unit.uow for unit in state.units.values()] == [uow(0), uow(1)]
