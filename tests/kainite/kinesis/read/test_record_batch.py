"""Batches of what a reply holds."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.base.record import RawRecord
from kainite.child.json_lines.records import render_process_records
from kainite.kinesis.read.record_batch import make_batch, make_batches
from support import kpl


def record(sequence: int, data: str | None = "YWJj", key: str = "k", at: float | None = 1.5) -> RawRecord:
    return RawRecord(str(sequence), key, data, at)


@given(
    st.lists(st.integers(1, 60), unique=True, max_size=30).map(sorted),
    st.none() | st.builds(Position, st.integers(0, 61), st.integers(0, 3)),
    st.none() | st.builds(Position, st.integers(0, 61), st.integers(0, 3)),
)
def test_batches_hold_what_follows_the_start_and_never_straddle_the_cut(
    sequences: list[int], after: Position | None, cut_at: Position | None
) -> None:
    batches = make_batches(
        [record(sequence) for sequence in sequences], 5, after=after, cut_at=cut_at, render=render_process_records
    )
    given_out = [int(r["sequenceNumber"]) for batch in batches for r in json.loads(batch.line)["records"]]
    assert given_out == [s for s in sequences if after is None or Position(s) > after]
    for batch in batches:
        assert batch.first is not None
        assert batch.last is not None
        assert 0 < batch.count == len(json.loads(batch.line)["records"])
        assert cut_at is None or (batch.first <= cut_at) == (batch.last <= cut_at)
        assert (batch.millis_behind_latest, batch.arrival_ms) == (5, 1500)
    assert len(batches) <= 2


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 6)), unique_by=lambda one: one[0], max_size=15).map(sorted),
    st.none() | st.builds(Position, st.integers(0, 41), st.integers(0, 7)),
    st.none() | st.builds(Position, st.integers(0, 41), st.integers(0, 7)),
)
def test_batches_start_and_are_cut_inside_aggregates(
    sizes: list[tuple[int, int]], after: Position | None, cut_at: Position | None
) -> None:
    # Size 0 is a plain record here.
    records = [record(sequence, data=aggregate(size) if size else "YWJj") for sequence, size in sizes]
    batches = make_batches(records, 5, after=after, cut_at=cut_at, render=render_process_records)
    found = [[place(r) for r in json.loads(batch.line)["records"]] for batch in batches]
    every = [Position(sequence, sub) for sequence, size in sizes for sub in range(size or 1)]
    assert [position for positions in found for position in positions] == [p for p in every if not after or p > after]
    for batch, positions in zip(batches, found, strict=True):
        assert (batch.first, batch.last, batch.count) == (positions[0], positions[-1], len(positions))
        assert cut_at is None or (positions[0] <= cut_at) == (positions[-1] <= cut_at)


def aggregate(size: int) -> str:
    return base64.b64encode(kpl.aggregate([kpl.User(b"x")] * size)).decode()


def place(given_out: dict[str, Any]) -> Position:
    return Position(int(given_out["sequenceNumber"]), given_out["subSequenceNumber"])


def test_a_line_is_held_until_it_is_taken() -> None:
    batch = make_batch([record(1)], 0, lambda _, __, *, plain=False: (b"li", b"ne\n"))
    assert (batch.line, batch.size) == (b"line\n", 5)
    assert batch.take_line() == (b"li", b"ne\n")
    assert (batch.line, batch.size) == (b"", 0)
    assert batch.count == 1
