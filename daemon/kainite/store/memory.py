"""The log's store in memory: for tests, and the plainest implementation of the contract."""

from __future__ import annotations

import bisect
import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kainite.base.errors import LogCorruptError, LogUnavailableError
from kainite.log.contract import ANSWERS_KEPT, REQUESTS_AT_ONCE, Fork, LogHead, Slot, TransactionDecision
from kainite.log.format.entry import Batch
from kainite.store.striping import passes, place, tail_of


@dataclass(slots=True)
class _Partition:
    head: LogHead | None = None
    slots: dict[int, tuple[Slot, Batch | None]] = field(default_factory=dict)
    """The slots of all keys except the fork: no two keys have a slot at the same id."""
    fork: Slot | None = None
    requests: dict[str, Mapping[str, str]] = field(default_factory=dict)
    answers: dict[str, Mapping[str, str]] = field(default_factory=dict)
    names: dict[str, bytes] = field(default_factory=dict)
    decisions: dict[str, TransactionDecision] = field(default_factory=dict)


class MemoryStore:
    """Implements :class:`~kainite.log.contract.LogStore`; safe to share between threads."""

    def __init__(self) -> None:
        self._partitions: dict[str, _Partition] = {}
        self._lock = threading.Lock()
        self._request_ids = itertools.count(1)

    def create(self) -> None:
        pass

    def read_head(self, partition: str) -> LogHead | None:
        with self._lock:
            return self._of(partition).head

    def swap_head(self, partition: str, new: LogHead, expected: LogHead | None) -> bool:
        with self._lock:
            kept = self._of(partition)
            if kept.head is not None and kept.head.version == new.version:
                return True  # written by an attempt whose reply was lost
            if (kept.head and kept.head.version) != (expected and expected.version):
                return False
            kept.head = new
            return True

    def read_tail(self, partition: str) -> Slot | None:
        with self._lock:
            kept = self._of(partition)
            return tail_of(lambda stripe: _last(kept, stripe))

    def last_slot(self, partition: str, stripe: int | None) -> Slot | None:
        """Returns the last slot of a stripe, or of the spine (None)."""
        with self._lock:
            return _last(self._of(partition), stripe)

    def put_fence(self, partition: str, at: int, generation: int, nonce: str) -> Slot | None:
        with self._lock:
            kept = self._of(partition)
            slots = kept.slots
            if passes(at, generation, kept.fork):
                return kept.fork
            there = slots[at][0] if at in slots else None
            if there is not None and there.nonce != nonce and not (there.is_fence and there.generation < generation):
                return there
            slots[at] = (Slot(at, generation, 0, nonce), None)
            return None

    def put_fork(self, partition: str, fork: Fork, generation: int, nonce: str) -> Slot | None:
        with self._lock:
            kept = self._of(partition)
            there = kept.fork or kept.slots.get(fork.at, (None, None))[0]
            if there is None:
                raise LogUnavailableError("no fence is at the place of a fork")
            if there.nonce == nonce:
                return None
            if there is kept.fork or not there.is_fence or there.generation != generation:
                return there
            del kept.slots[fork.at]
            kept.fork = Slot(fork.at, generation, 0, nonce, fork)
            return None

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        with self._lock:
            kept = self._of(partition)
            slots = kept.slots
            if passes(batch.first_id, batch.generation, kept.fork):
                return kept.fork
            there = slots[batch.first_id][0] if batch.first_id in slots else None
            if there is not None and there.nonce == nonce:
                return None
            if there is not None and not (there.is_fence and there.generation == batch.generation):
                return there
            slot = Slot(batch.first_id, batch.generation, len(batch.entries), nonce)
            slots[batch.first_id] = (slot, batch)
            return None

    def read_batches(
        self, partition: str, first_id: int, last_id: int | None = None, *, data: bool = True, strong: bool = False
    ) -> Iterator[Batch]:
        with self._lock:
            slots = self._of(partition).slots
            starts = sorted(slots)
            begin = max(bisect.bisect_right(starts, first_id) - 1, 0)
            found = [slots[start] for start in starts[begin:]]
        expected = first_id
        for slot, batch in found:
            if last_id is not None and slot.first_id > last_id:
                return
            if slot.first_id > expected:
                raise LogCorruptError(f"log partition {partition} has no entry {expected}")
            if batch is None or batch.last_id < first_id:
                continue
            expected = batch.last_id + 1
            yield batch if data else without_data(batch)

    def truncate(self, partition: str, below: int) -> int:
        with self._lock:
            kept = self._of(partition)
            slots = kept.slots
            lasts = [_last(kept, stripe) for stripe in _keys(kept)]
            gone = [start for start, (slot, _) in slots.items() if slot.next_id <= below and slot not in lasts]
            for start in gone:
                del slots[start]
            return len(gone)

    def put_names(self, partition: str, segment: str, names: bytes) -> None:
        with self._lock:
            self._of(partition).names[segment] = names

    def read_names(self, partition: str) -> Iterator[tuple[str, bytes]]:
        with self._lock:
            return iter(sorted(self._of(partition).names.items()))

    def delete_names(self, partition: str, keys: Sequence[str]) -> None:
        with self._lock:
            for key in keys:
                self._of(partition).names.pop(key, None)

    def decide(self, partition: str, name: str, *, committed: bool, targets: Sequence[str] = ()) -> bool:
        with self._lock:
            mine = TransactionDecision(committed, tuple(targets))
            return self._of(partition).decisions.setdefault(name, mine).committed

    def read_decisions(self, partition: str) -> Iterator[tuple[str, TransactionDecision]]:
        with self._lock:
            return iter(sorted(self._of(partition).decisions.items()))

    def delete_decisions(self, partition: str, names: Sequence[str]) -> None:
        with self._lock:
            for name in names:
                self._of(partition).decisions.pop(name, None)

    def put_request(self, partition: str, request: Mapping[str, str]) -> str:
        with self._lock:
            request_id = f"{next(self._request_ids):08}"
            self._of(partition).requests[request_id] = dict(request)
            return request_id

    def read_requests(self, partition: str) -> Sequence[tuple[str, Mapping[str, str]]]:
        with self._lock:
            kept = self._of(partition)
            for request_id in sorted(kept.answers)[:-ANSWERS_KEPT]:
                del kept.answers[request_id]
                kept.requests.pop(request_id, None)
            left = [item for item in sorted(kept.requests.items()) if item[0] not in kept.answers]
            return left[:REQUESTS_AT_ONCE]

    def answer_request(self, partition: str, request_id: str, answer: Mapping[str, str]) -> None:
        with self._lock:
            self._of(partition).answers[request_id] = dict(answer)

    def take_answer(self, partition: str, request_id: str) -> Mapping[str, str] | None:
        with self._lock:
            kept = self._of(partition)
            if request_id in kept.answers:
                kept.requests.pop(request_id, None)
            return kept.answers.pop(request_id, None)

    def _of(self, partition: str) -> _Partition:
        return self._partitions.setdefault(partition, _Partition())


def _keys(kept: _Partition) -> list[int | None]:
    fork = kept.fork.fork if kept.fork else None
    return [None, *range(fork.stripes if fork else 0)]


def _last(kept: _Partition, stripe: int | None) -> Slot | None:
    """Returns the last slot of a key."""
    if stripe is None and kept.fork is not None:
        return kept.fork
    fork = kept.fork.fork if kept.fork else None
    found = max((at for at in kept.slots if place(at, fork) == stripe), default=None)
    return None if found is None else kept.slots[found][0]


def without_data(batch: Batch) -> Batch:
    """Returns the batch without its entries' data, as its index alone has it."""
    return replace(batch, entries=tuple(replace(entry, data=b"", piece=None) for entry in batch.entries))
