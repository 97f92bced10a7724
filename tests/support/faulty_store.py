"""A store of the log whose connection a test breaks."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.log.contract import LogHead, Slot
from kainite.log.format.entry import Batch
from kainite.store.memory import MemoryStore

LIMIT = 10.0


class FaultyStore(MemoryStore):
    """A real store whose connection the test breaks: before a put, or between the put and its reply."""

    def __init__(self) -> None:
        super().__init__()
        self.fail_before = 0
        self.fail_after = 0
        self.gate = threading.Event()
        self.gate.set()
        self.batches = 0
        self.waiting = 0
        self.fail_swaps = 0
        self.broken = False

    def swap_head(self, partition: str, new: LogHead, expected: LogHead | None) -> bool:
        if self.fail_swaps:
            self.fail_swaps -= 1
            raise LogUnavailableError("throttled")
        return super().swap_head(partition, new, expected)

    def read_requests(self, partition: str) -> Sequence[tuple[str, Mapping[str, str]]]:
        if self.broken:
            raise ZeroDivisionError
        return super().read_requests(partition)

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        self.waiting += 1
        assert self.gate.wait(LIMIT)
        self.waiting -= 1
        if self.fail_before:
            self.fail_before -= 1
            raise LogUnavailableError("lost before the store")
        in_way = super().put_batch(partition, batch, nonce)
        self.batches += 1
        if self.fail_after:
            self.fail_after -= 1
            raise LogUnavailableError("the reply was lost")
        return in_way


@pytest.fixture
def faulty() -> FaultyStore:
    return FaultyStore()
