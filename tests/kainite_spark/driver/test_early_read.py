"""Reading the log before a takeover: what is taken then is what a reader finds that begins then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kainite.base.errors import LogCorruptError, LogUnavailableError
from kainite.log.format.entry import Batch
from kainite.log.state import snapshot
from kainite.log.state.loading import load_state
from kainite.store.memory import MemoryStore
from kainite.uow.delta import Delta, Operation
from kainite.uow.signature import Signatures
from kainite_spark.driver.early_read import EarlyRead
from support.main_log import MainLog


class NotingStore(MemoryStore):
    """Notes from where batches are read; may be away."""

    def __init__(self) -> None:
        super().__init__()
        self.read_from: list[int] = []
        self.away_after: int | None = None

    def read_batches(self, partition: str, first_id: int, *args: Any, **named: Any) -> Iterator[Batch]:
        self.read_from.append(first_id)
        for number, batch in enumerate(super().read_batches(partition, first_id, *args, **named)):
            if number == self.away_after:
                raise LogUnavailableError("away")
            yield batch


@pytest.fixture
def store() -> NotingStore:
    return NotingStore()


@pytest.fixture
def log(store: NotingStore) -> MainLog:
    return MainLog(store, Signatures(None))


def bring(log: MainLog, *names: str) -> None:
    for name in names:
        log.unit(name, Delta("t", Operation.INSERT, {"id": name}, {"id": name}, {}))


def test_what_came_since_is_read_and_nothing_else(store: NotingStore, log: MainLog) -> None:
    early = EarlyRead(store, "0")
    bring(log, "T-0", "T-1")
    early.read()
    read = log.state.next_id
    bring(log, "T-2")
    store.read_from.clear()
    taken = early.take()
    assert store.read_from == [read]
    assert snapshot.dump(taken) == snapshot.dump(load_state(store, "0"))
    assert {unit.uow for unit in taken.units.values()} == {"T-0", "T-1", "T-2"}


def test_what_was_taken_is_the_taker_s_alone(store: NotingStore, log: MainLog) -> None:
    early = EarlyRead(store, "0")
    bring(log, "T-0")
    early.read()
    assert early.take() is not early.take()


def test_where_what_comes_next_is_truncated_the_log_is_read_from_its_snapshot(store: NotingStore, log: MainLog) -> None:
    early = EarlyRead(store, "0")
    bring(log, "T-0")
    early.read()
    for _ in range(3):
        log.append()
        log.snapshot()
    log.truncate(log.state.snapshot_since)
    early.read()
    bring(log, "T-1")
    assert snapshot.dump(early.take()) == snapshot.dump(load_state(store, "0"))


def test_a_read_that_ends_half_way_is_begun_anew(store: NotingStore, log: MainLog) -> None:
    early = EarlyRead(store, "0")
    early.read()
    bring(log, "T-0", "T-1")
    store.away_after = 1
    early.read()
    with pytest.raises(LogUnavailableError):
        early.take()
    store.away_after = None
    assert snapshot.dump(early.take()) == snapshot.dump(load_state(store, "0"))


def test_a_log_that_does_not_read_back_is_told_to_the_taker_alone(store: NotingStore, log: MainLog) -> None:
    early = EarlyRead(store, "0")
    bring(log, "T-0", "T-1")
    store.truncate("0", log.state.next_id)
    early.read()
    with pytest.raises(LogCorruptError):
        early.take()
