from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from kainite.base.errors import KainiteError, LogCorruptError, LogUnavailableError, TargetUnavailableError
from kainite.log.format.entry import Batch, Entry, EntryKind, FragmentMeta, UnitMeta, UnitStatus
from kainite.settings import AwsSettings
from kainite.store.memory import MemoryStore
from kainite.uow.touches import Touched
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.executor.tasks import RoutedPart, TaskSettings, apply_parts, read_slice
from kainite_spark.plan.micro_batch import Slice, Wanted
from kainite_spark.plan.unit_part import UnitHeader, UnitPart
from kainite_spark.targets.contract import TargetSession
from kainite_spark.targets.fence import Fence
from support.log_builders import delta
from support.stores import Database, Store, Stores


def deltas(*keys: int) -> bytes:
    return orjson.dumps([delta(key).to_json() for key in keys])


def unit(tid: int, *keys: int) -> Entry:
    return Entry(
        EntryKind.UNIT, UnitMeta(f"T-{tid}", len(keys)), Touched(frozenset({1}), frozenset({2})), deltas(*keys)
    )


FRAGMENT = Entry(EntryKind.FRAGMENT, FragmentMeta("T-4", "shardId-0", 1), data=deltas(3))
ENTRIES = [unit(0, 1), unit(1, 2), FRAGMENT, unit(3, 5), unit(4, 4)]


class Lagging(MemoryStore):
    """A store whose eventually consistent reads miss the newest batch, and which may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.strong_reads = 0
        self.error: KainiteError | None = None

    def read_batches(
        self, partition: str, first_id: int, last_id: int | None = None, *, data: bool = True, strong: bool = False
    ) -> Iterator[Batch]:
        if self.error is not None:
            raise self.error
        self.strong_reads += strong
        found = list(super().read_batches(partition, first_id, last_id, data=data, strong=strong))
        return iter(found if strong else found[:-1])


@pytest.fixture
def log() -> Lagging:
    """Returns a log with two batches: entries 0 to 2, and 3 to 4."""
    store = Lagging()
    for first, entries in ((0, ENTRIES[:3]), (3, ENTRIES[3:])):
        assert store.put_batch("0", Batch(first, 1, 0, tuple(entries)), f"nonce {first}") is None
    return store


def part(tid: int, number: int = 0, unit_id: int | None = None) -> UnitPart:
    entry = ENTRIES[tid]
    head = None
    if isinstance(entry.meta, UnitMeta):
        head = UnitHeader(entry.meta.uow, entry.meta.count, entry.touched.written, entry.touched.read)
    return UnitPart(tid if unit_id is None else unit_id, number, entry.data, head)


def slice_of(*wanted: Wanted, ranges: tuple[tuple[int, int], ...] = ((0, 4),)) -> Slice:
    return Slice(ranges, wanted)


@pytest.mark.parametrize(
    ("piece", "parts", "strong_reads"),
    [
        (slice_of(Wanted(1, 1, 0, 7), ranges=((0, 4),)), [(7, part(1))], 0),
        (
            slice_of(Wanted(2, 4, 0, 0), Wanted(3, 3, 0, 1), Wanted(4, 4, 1, 0)),
            [(0, part(2, unit_id=4)), (1, part(3)), (0, part(4, 1))],
            1,
        ),
        (slice_of(Wanted(0, 0, 0, 0), Wanted(3, 3, 0, 0), ranges=((0, 0), (3, 3))), [(0, part(0)), (0, part(3))], 2),
    ],
    ids=["one batch", "a unit of two entries", "two ranges"],
)
def test_wanted_parts_come_in_order_with_their_job_instance(
    log: Lagging, piece: Slice, parts: list[RoutedPart], strong_reads: int
) -> None:
    assert list(read_slice(log, "0", piece)) == parts
    assert log.strong_reads == strong_reads


def test_of_a_unit_that_is_too_large_no_more_than_the_bound_is_held(log: Lagging) -> None:
    piece = slice_of(Wanted(2, 4, 0, 0), Wanted(3, 3, 0, 1), Wanted(4, 4, 1, 0))
    (_, first), (_, other), (_, second) = read_slice(log, "0", piece, len(part(2).data))
    assert isinstance(first, UnitPart)
    assert isinstance(second, UnitPart)
    assert (first, other) == (part(2, unit_id=4), part(3))
    assert (second.data, second.head) == (b"", part(4, 1).head)
    assert "(applyUnitBytes)" in str(second.fault)


def test_an_entry_that_is_missing_is_an_error_for_each_job_instance(log: Lagging) -> None:
    piece = slice_of(Wanted(1, 1, 0, 0), Wanted(1, 1, 0, 2), Wanted(9, 9, 0, 2), ranges=((0, 9),))
    found = dict(read_slice(log, "0", piece))
    assert set(found) == {0, 2}
    for error in found.values():
        assert isinstance(error, LogCorruptError)
        assert str(error) == "log partition 0 has no entry 9, which unit 9 needs"


def test_a_log_that_is_away_is_returned_as_data(log: Lagging) -> None:
    log.error = LogUnavailableError("throttled")
    assert list(read_slice(log, "0", slice_of(Wanted(1, 1, 0, 5)))) == [(5, log.error)]


TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, v bigint)"
OPTIONS = ApplyOptions()


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Store]:
    stores = Stores(Database(f"sqlite:///{tmp_path / 'target.db'}"))
    yield stores.open(TABLE)
    stores.close()


Connect = Callable[[], TargetSession]


def test_parts_are_assembled_and_applied(target: Store) -> None:
    parts = [part(4, 1), part(0), part(2, unit_id=4)]
    parts[0] = parts[0]._replace(head=UnitHeader("T-4", 2, frozenset({1}), frozenset({2})))
    result = apply_parts(lambda: target.session, target.fence, OPTIONS, 3, parts)
    assert (result.instance, result.problem) == (3, None)
    assert [(outcome.tid, outcome.status) for outcome in result.outcomes] == [
        (0, UnitStatus.COMMITTED),
        (4, UnitStatus.COMMITTED),
    ]
    assert target.rows("t") == [(1, 1), (3, 3), (4, 4)]


def test_an_error_among_the_parts_applies_nothing(target: Store) -> None:
    error = LogUnavailableError("throttled")
    result = apply_parts(lambda: target.session, target.fence, OPTIONS, 3, [part(0), error])
    assert (result.instance, result.outcomes, result.problem) == (3, (), error)
    assert target.rows("t") == []


def test_a_target_that_is_away_is_returned_as_data(target: Store) -> None:
    def refuse() -> TargetSession:
        raise TargetUnavailableError("no answer")

    result = apply_parts(refuse, target.fence, OPTIONS, 0, [part(0)])
    assert isinstance(result.problem, TargetUnavailableError)


def test_a_unit_with_a_missing_part_is_returned_as_data(target: Store) -> None:
    result = apply_parts(lambda: target.session, target.fence, OPTIONS, 0, [part(4, 1)])
    assert isinstance(result.problem, LogCorruptError)


def test_a_task_that_is_too_late_is_refused_by_the_fence(target: Store) -> None:
    target.target.raise_generation("0", 2)
    result = apply_parts(lambda: target.session, Fence("0", 1, 0), OPTIONS, 0, [part(0)])
    assert result.problem is not None
    assert not result.problem.retryable
    assert target.rows("t") == []


def test_settings_of_one_run_are_equal_and_survive_pickling(target: Store) -> None:
    settings = TaskSettings("run 1", AwsSettings(), "log", "0", target.target, OPTIONS)
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert replace(settings, table="other") == settings != replace(settings, run="run 2")
