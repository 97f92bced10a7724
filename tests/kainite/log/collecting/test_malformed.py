"""Malformed units never put the order of numbers out: whatever comes, each unit ends, and a replay gives the same."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.log.collecting.collect import collect
from kainite.log.collecting.overdue import expire
from kainite.log.format.entry import Entry, Fault, UnitMeta, UnitStatus
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.loading import load_state
from kainite.settings import LogSettings, UowOrder, UowSettings
from kainite.store.memory import MemoryStore
from kainite.uow.delta import MAX_NATURAL, UnitEnd
from kainite.uow.fragment import Fragment, Reject
from support.log_builders import fragment
from support.next_append import append_next
from support.owned_log import owned_log

DENSE = UowSettings(order=UowOrder.DENSE, first_number=1)
ORDERS = [DENSE, UowSettings(order=UowOrder.ARRIVAL)]
OWNED = LogSettings(table="t", owner="me", lease=1000.0, heartbeat=100.0, put_interval=0.0, poll=100.0)
BROKEN = Reject("no delta", "{}")


class Log:
    """A log, folded as its owner folds it and, from time to time, as a reader does."""

    def __init__(self, rules: UowSettings = DENSE) -> None:
        self.state = FoldedLog()
        self.rules = rules
        self.entries: list[Entry] = []
        self._appends = 0

    def bring(self, *fragments: Fragment, shard: str = "s0") -> None:
        self._appends += 1
        self.entries += collect(self.state, self.rules, shard, Position(self._appends), fragments, 0)

    def time_out(self) -> None:
        """Lets all open units wait too long, as often as one unit may give up another's number."""
        for _ in range(3):
            self.entries += expire(self.state, self.rules, 0, list(self.state.open))

    def restart(self) -> None:
        """Loads the state anew: from the entries, which must give the same, and then from a snapshot."""
        again = FoldedLog()
        for tid, entry in enumerate(self.entries):
            again.apply(tid, entry, 0)
        assert snapshot.dump(again) == snapshot.dump(self.state)
        self.state = snapshot.load(snapshot.dump(self.state))
        assert snapshot.dump(self.state) == snapshot.dump(again)

    def units(self) -> dict[str, tuple[int | None, Fault | None]]:
        metas = [entry.meta for entry in self.entries if isinstance(entry.meta, UnitMeta)]
        return {meta.uow: (meta.number, meta.fault) for meta in metas}


def is_indexed(state: FoldedLog) -> bool:
    """Returns whether the units that wait for their turn are just the open units with all parts and a number."""
    waiting = {unit.number: name for name, unit in state.open.items() if unit.complete and unit.number is not None}
    return state.ready == waiting and len(waiting) == sum(unit.complete for unit in state.open.values())


def test_a_number_that_another_unit_took_meanwhile_is_none_of_a_unit_that_a_bad_line_fails() -> None:
    log = Log()
    log.bring(fragment("A", [1], count=2, number=3))
    log.bring(fragment("B", [2], count=1, number=3))
    log.bring(Fragment("A", rejects=(BROKEN,)))
    assert log.units() == {"A": (None, Fault.MALFORMED)}
    assert log.state.ready == {3: "B"}
    log.restart()
    log.bring(fragment("C", [3], count=1, number=1), fragment("D", [4], count=1, number=2))
    assert list(log.units().items())[1:] == [("C", (1, None)), ("D", (2, None)), ("B", (3, None))]
    assert not log.state.open


def test_one_unit_with_a_number_far_away_fails_alone() -> None:
    log = Log()
    log.bring(fragment("A", [1], count=1, number=1))
    log.bring(fragment("far", [2], count=1, number=10**18))
    assert "far" in log.state.open, "numbers between may be on a shard that is not read so far"
    log.time_out()
    log.restart()
    assert log.units()["far"] == (None, Fault.FAR_NUMBER)
    far = log.state.find("far")
    assert far is not None
    assert (far.status, far.malformed, far.obstacle) == (UnitStatus.FAILED, False, None)
    assert "1000000000000000000" in (far.cause or "")
    assert "number 2 is next" in (far.cause or "")
    log.bring(fragment("B", [3], count=1, number=2))
    assert log.units()["B"] == (2, None)


def test_a_source_that_goes_on_further_on_is_followed() -> None:
    log = Log()
    log.bring(*(fragment(f"T{number}", [number], count=1, number=number) for number in range(5_001, 5_011)))
    log.bring(fragment("far", [2], count=1, number=10**18))
    log.time_out()
    units = log.units()
    assert units.pop("missing:1-5000") == (5_000, Fault.MISSING_NUMBER)
    assert units.pop("far") == (None, Fault.FAR_NUMBER)
    assert list(units.values()) == [(number, None) for number in range(5_001, 5_011)]


@pytest.mark.parametrize("name", ["missing:1-3", "missing:1", "number:2"])
def test_a_unit_named_as_one_that_stands_for_numbers_fails_and_is_not_lost(name: str) -> None:
    log = Log()
    log.bring(fragment(name, [1], count=2, number=4))
    log.bring(fragment("B", [2], count=1, number=5))
    log.time_out()
    log.bring(fragment(name, [9], count=2, number=4))
    log.restart()
    failed = [unit for unit in log.state.units.values() if unit.count]
    assert [(unit.status, unit.count) for unit in failed if name in unit.uow] == [(UnitStatus.FAILED, 2)]
    assert {unit.number for unit in log.state.units.values()} >= {5}


_NUMBERS = st.none() | st.integers(0, 6) | st.sampled_from([1_500, 10**18, MAX_NATURAL])
_NAMES = st.sampled_from(["A", "B", "C", "D", "E", "missing:1", "missing:1-2", "number:2"])
_FRAGMENTS = st.builds(
    lambda made, more, bad: replace(
        made, ends=(*made.ends, *more), rejects=(BROKEN,) if bad else ()
    ),
    st.builds(
        fragment, _NAMES, st.lists(st.integers(0, 3), max_size=3),
        count=st.none() | st.integers(0, 3), number=_NUMBERS, first_ordinal=st.none() | st.integers(0, 2),
    ),
    st.lists(st.builds(UnitEnd, st.integers(0, 3), _NUMBERS), max_size=1),
    st.booleans(),
)  # fmt: skip
_STEPS = st.one_of(st.lists(_FRAGMENTS, max_size=3), st.sampled_from(["time out", "restart"]))


@pytest.mark.parametrize("rules", ORDERS, ids=lambda rules: rules.order.value)
@settings(max_examples=150, deadline=None)
@given(steps=st.lists(_STEPS, max_size=20))
def test_whatever_comes_each_unit_ends_and_a_replay_gives_the_same(
    rules: UowSettings, steps: list[list[Fragment] | str]
) -> None:
    log = Log(rules)
    for step in [*steps, "time out", "restart"]:
        match step:
            case "time out":
                log.time_out()
            case "restart":
                log.restart()
            case fragments:
                log.bring(*fragments)
        assert is_indexed(log.state)
    assert not log.state.open, "nothing is open for ever"
    sound = [number for number, fault in log.units().values() if number is not None and fault is None]
    assert rules.order is UowOrder.ARRIVAL or sound == sorted(set(sound)), "no number is out of its turn"


@settings(max_examples=20, deadline=None)
@given(steps=st.lists(st.lists(_FRAGMENTS, max_size=3), min_size=1, max_size=8))
def test_a_restart_of_the_owner_after_each_append_finds_what_it_had_in_memory(steps: list[list[Fragment]]) -> None:
    asyncio.run(appended_with_restarts(steps))


async def appended_with_restarts(steps: list[list[Fragment]]) -> None:
    store = MemoryStore()
    for number, fragments in enumerate(steps, 1):
        async with asyncio.timeout(30), owned_log(store, OWNED, DENSE) as owner:
            await append_next(owner, "s0", Position(number), Position(number), fragments)
            await owner.write(lambda state: expire(state, DENSE, 0, list(state.open)[:2]))
            before = timeless(owner.state)
            assert is_indexed(owner.state)
        assert timeless(load_state(store, OWNED.partition, names=True)) == before


def timeless(state: FoldedLog) -> bytes:
    """Returns a state as bytes, without the times of units' first fragments: a batch is formed after its entries."""
    copy = snapshot.load(snapshot.dump(state))
    for unit in [*copy.open.values(), *(unit.late for unit in copy.units.values() if unit.late is not None)]:
        unit.opened_ms = 0
    return snapshot.dump(copy)
