from __future__ import annotations

import base64
import json
from collections.abc import Sequence

import pytest

from kainite.base.checkpoint import LATEST, TRIM_HORIZON, Checkpoint
from kainite.base.position import Position
from kainite.base.record import Pieces, RawRecord
from kainite.child.json_lines.records import render_process_records
from kainite.kinesis.read.batcher import Batcher
from kainite.kinesis.shards import HashRange
from support import kpl
from support.sources import sequences


def record(sequence: int, data: bytes = b"x") -> RawRecord:
    return RawRecord(str(sequence), "k", base64.b64encode(data).decode(), 1.5)


def batcher(start: Checkpoint = TRIM_HORIZON, **rules: object) -> Batcher:
    return Batcher(start, render_process_records, **rules)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("start", "cut_at", "batches"),
    [
        (TRIM_HORIZON, None, [[1, 2, 3]]),
        (Checkpoint("1"), None, [[2, 3]]),
        (Checkpoint("3"), None, []),
        (TRIM_HORIZON, Position(2), [[1, 2], [3]]),
        (Checkpoint("1"), Position(2), [[2], [3]]),
        (LATEST, Position(2), [[3]]),
    ],
)
def test_batches_follow_the_checkpoint_and_the_cut(
    start: Checkpoint, cut_at: Position | None, batches: list[list[int]]
) -> None:
    made = batcher(start, cut_at=cut_at).begin([record(n) for n in (1, 2, 3)], 40)
    assert [sequences(batch) for batch in made.batches] == batches
    assert (made.rest, made.last, made.millis_behind_latest) == ((), Position(3), 40)


@pytest.mark.parametrize(("even_empty", "counts"), [(False, []), (True, [0])])
def test_no_records_make_an_empty_batch_where_it_is_wanted(even_empty: bool, counts: list[int]) -> None:
    made = batcher(even_empty=even_empty).begin([], 0)
    assert [batch.count for batch in made.batches] == counts
    assert made.last is None


@pytest.mark.parametrize("plain", [False, True])
def test_large_aggregates_are_made_into_batches_a_portion_at_a_time(plain: bool) -> None:
    users = [kpl.User(bytes(1000))] * 300
    rules = batcher()
    made = rules.begin([record(n, kpl.aggregate(users)) for n in range(1, 6)], 40, plain=plain)
    counts = [[batch.count for batch in made.batches]]
    while made.rest:
        made = rules.next(made)
        counts.append([batch.count for batch in made.batches])
        assert (made.last, made.millis_behind_latest) == (Position(5), 40)
    assert counts == [[600], [600], [300]]


@pytest.mark.parametrize(("hash_range", "count"), [(None, 2), (HashRange(0, 10), 0), (HashRange(0, 11), 2)])
def test_an_aggregate_beyond_the_shards_range_is_dropped(hash_range: HashRange | None, count: int) -> None:
    straddling = kpl.aggregate([kpl.User(b"x", 0, 0), kpl.User(b"x", 0, 1)], explicit=["10", "11"])
    made = batcher(hash_range=hash_range).begin([record(1, straddling)], 0, plain=True)
    assert sum(batch.count for batch in made.batches) == count


def test_the_line_is_made_by_the_given_renderer() -> None:
    def counted(records: Sequence[RawRecord], millis_behind_latest: int | None, *, plain: bool = False) -> Pieces:
        return (b"%d records, %d ms\n" % (len(records), millis_behind_latest or 0),)

    counting = Batcher(TRIM_HORIZON, counted)
    (batch,) = counting.begin([record(1), record(2)], 40).batches
    assert batch.line == b"2 records, 40 ms\n"
    (batch,) = batcher().begin([record(1)], 40).batches
    assert json.loads(batch.line)["millisBehindLatest"] == 40
