"""An append on which no owner can decide ends no owner after another: its units fail, and the log lives on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from kainite.base.errors import LogAppendError, LogRequestError
from kainite.base.position import Position
from kainite.log.collecting import collect as collecting
from kainite.log.format.entry import Entry, Fault
from kainite.log.state.folded import FoldedLog
from kainite.log.state.loading import load_state
from kainite.owner import shard_appends
from kainite.peers.sharing.refused_appends import RefusedAppends, set_aside
from kainite.uow.fragment import Fragment
from support.log_builders import fragment
from support.log_members import LIMIT, P, members, units_of
from support.next_append import append_next

PUT = list[list[str]]


def at(sequence: int) -> Position:
    return Position(sequence)


def breaking(monkeypatch: pytest.MonkeyPatch, *, folds: bool) -> None:
    """Puts an error into collecting, which comes up with the row 13."""

    def broken(state: FoldedLog, rules: Any, shard: str, last: Position, made: Sequence[Fragment], now: int) -> Any:
        if any(13 in each.touched.written and each.count for each in made):
            if folds:
                collecting.collect(state, rules, shard, last, made, now)
            raise ZeroDivisionError("nobody knew")
        entries: list[Entry] = collecting.collect(state, rules, shard, last, made, now)
        return entries

    monkeypatch.setattr(shard_appends, "collect", broken)


@pytest.mark.parametrize("folds", [False, True], ids=["before a fold", "after a fold"])
@pytest.mark.parametrize("asked", ["a", "b"], ids=["owner here", "owner elsewhere"])
async def test_its_units_fail_with_the_cause_and_the_log_lives_on(
    monkeypatch: pytest.MonkeyPatch, folds: bool, asked: str
) -> None:
    breaking(monkeypatch, folds=folds)
    async with members() as all_, asyncio.timeout(LIMIT):
        logs = {name: await all_.join(name) for name in ("a", "b")}
        log = logs[asked]
        await append_next(log, "s0", at(1), at(2), [fragment("T-1", [1], count=1)])
        await append_next(
            log, "s0", at(3), at(9), [fragment("poison", [13], count=1), fragment("beside", [2], count=1)]
        )
        await append_next(log, "s0", at(10), at(11), [fragment("T-2", [1], count=1)])
        assert units_of(all_.store) == ["T-1", "poison", "beside", "T-2"]
        state = load_state(all_.store, P)
        failed = [unit for unit in state.units.values() if unit.fault is Fault.MALFORMED]
        assert [unit.uow for unit in failed] == ["poison", "beside"]
        assert "records 3 to 9 of shard s0" in str(failed[0].cause)
        assert "nobody knew" in str(failed[0].cause)
        assert failed[0].written == {13}, "what touches its rows waits for a person"
        assert '"id":13' in str(failed[0].meta.offending)
        assert state.positions == {"s0": at(11)}


async def test_an_append_that_breaks_the_owner_without_deltas_too_holds_its_shard_and_asks_no_other_owner() -> None:
    asked: PUT = []

    async def put(fragments: Sequence[Fragment]) -> None:
        asked.append([made.uow for made in fragments])
        if any(made.uow == "poison" for made in fragments):
            raise LogAppendError("nobody knew")

    appends = RefusedAppends()
    for _ in range(3):
        with pytest.raises(LogRequestError, match=r"shard s0 is held at the records up to 9.*nobody knew"):
            await appends.append(put, "s0", at(3), at(9), [fragment("poison", [13], count=1)])
    assert asked == [["poison"], ["poison"]]
    await appends.append(put, "s1", at(3), at(9), [fragment("T-1", [1], count=1)])
    await appends.append(put, "s0", at(10), at(11), [fragment("T-2", [1], count=1)])
    assert asked[2:] == [["T-1"], ["T-2"]]


def test_what_is_set_aside_has_its_end_and_its_rows_and_no_delta() -> None:
    (made,) = set_aside([fragment("T", [1], count=1, number=7)], "why")
    assert (made.count, made.piece) == (0, None)
    assert made.touched.written == {1}
    assert (made.ends[0].number, made.rejects[0].cause) == (7, "why")
