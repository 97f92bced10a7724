"""Reading a log back while its owner goes on."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogCorruptError
from kainite.log.contract import LogHead
from kainite.log.state import snapshot
from kainite.log.state.loading import load_state, read_from_low
from kainite.log.views.unit_times import load_units
from kainite.store.memory import MemoryStore
from kainite.uow.signature import Signatures
from support.main_log import MainLog


class BusyStore(MemoryStore):
    """Lets the owner act right after a reader has read the head."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[MainLog] = []

    def read_head(self, partition: str) -> LogHead | None:
        head = super().read_head(partition)
        if self.turns:
            log = self.turns.pop()
            for _ in range(3):
                log.append()
            log.snapshot()
        return head


def test_an_empty_partition_gives_an_empty_state() -> None:
    assert load_state(MemoryStore(), "0").next_id == 0


def test_snapshots_and_truncations_meanwhile_are_caught_up_with() -> None:
    store = BusyStore()
    log = MainLog(store, Signatures(None))
    log.append()
    log.snapshot()
    store.turns = [log, log]
    assert snapshot.dump(load_state(store, "0")) == snapshot.dump(log.state)


def test_who_reads_from_the_low_water_mark_on_reads_again_where_entries_leave_meanwhile() -> None:
    store = BusyStore()
    log = MainLog(store, Signatures(None))
    for _ in range(3):
        log.append()
    log.snapshot()
    store.turns = [log, log]
    lows: list[int] = []

    def read(low: int) -> int:
        lows.append(low)
        load_units(store, "0", low)
        return low

    assert read_from_low(store, "0", read) == lows[-1] > lows[0]


def test_what_is_missing_otherwise_is_an_error() -> None:
    store = MemoryStore()
    log = MainLog(store, Signatures(None))
    for _ in range(2):
        log.append()
    store.truncate("0", log.state.next_id)
    with pytest.raises(LogCorruptError, match="no entry 0"):
        load_state(store, "0")
