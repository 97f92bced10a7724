"""When load is moved, and what: the vectors of the load balancer that the measure comes from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.fleet.model.rebalancing import rebalancing
from kainite.fleet.model.records import Duty, Picture, Work, Worker
from kainite.fleet.model.states import DutyStatus

Row = tuple[str, str, float, tuple[str, ...]]


def picture(workers: int, *rows: Row) -> Picture:
    named = {f"w{n}": Worker(f"w{n}", "1") for n in range(1, workers + 1)}
    duties = {
        name: Duty(name, Work(weight=weight, affinity=affinity), DutyStatus.RUNNING, worker, "1")
        for name, worker, weight, affinity in rows
    }
    return Picture(named, duties)


@pytest.mark.parametrize(
    ("rows", "moves", "score"),
    [
        ([("a", "w1", 1, ()), ("b", "w2", 1, ())], [], 0),
        ([("a", "w1", 1, ()), ("b", "w1", 1, ())], [("b", "w2")], 51),
        ([("a", "w1", 1, ()), ("b", "w1", 6, ())], [("a", "w2")], (101 + 1 / 6) / 2),
        ([("a", "w1", 1, ()), ("b", "w1", 1, ("w1",))], [("a", "w2")], 51),
    ],
)
def test_the_reference_moves_the_same(rows: list[Row], moves: list[tuple[str, str]], score: float) -> None:
    found = rebalancing(picture(2, *rows))
    assert [(move.duty.name, move.worker.name) for move in found.moves] == moves
    assert found.score == pytest.approx(score)
    assert found.worthwhile == bool(moves)


def test_nothing_moves_for_a_little() -> None:
    rows: list[Row] = [(f"a{n}", "w1" if n < 5 else "w2", 1.0, ()) for n in range(8)]
    found = rebalancing(picture(2, *rows))
    assert found.moves
    assert not found.worthwhile


@given(st.lists(st.tuples(st.sampled_from(["w1", "w2", "w3"]), st.integers(1, 9)), max_size=12))
def test_moving_one_after_the_other_comes_to_an_end(held: list[tuple[str, int]]) -> None:
    now = picture(3, *((f"d{n}", worker, float(weight), ()) for n, (worker, weight) in enumerate(held)))
    for _ in range(len(held) + 1):
        found = rebalancing(now)
        if not found.worthwhile:
            return
        move = found.moves[0]
        moved = Duty(move.duty.name, move.duty.work, DutyStatus.RUNNING, move.worker.name, "1")
        now = Picture(now.workers, {**now.duties, moved.name: moved})
    raise AssertionError("it moves for ever")
