"""A batch is in its slot, or in chunks that are there before the slot; whatever else is found is told."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kainite.aws.dynamodb import Item
from kainite.base.errors import LogCorruptError, LogError
from kainite.log.contract import Fork, Slot
from kainite.log.format.entry import Batch
from kainite.store import batch_items
from kainite.store.batch_items import CHUNK_BYTES, BatchItems
from kainite.store.forks import KnownForks
from kainite.store.log_table import LogTable
from support.dynamodb_doubles import on_each_double
from support.log_builders import batch
from support.names import unique

LARGE = random.Random(0).randbytes(2 * CHUNK_BYTES + 1)


class World:
    """A log's table, and the batches in it."""

    def __init__(self, dynamodb: Any, fork: Fork | None = None) -> None:
        self.table = LogTable(dynamodb, unique("log"), lambda _: None)
        self.table.create()
        self.forks = KnownForks()
        self.forks.learn("0", Slot(0, 1, 0, "fork", fork))
        self.items = BatchItems(self.table, self.forks)

    def read(self, written: Batch, body: Item, *, data: bool = True) -> Batch:
        slot = Slot(written.first_id, written.generation, len(written.entries), "n")
        return self.items.batch_from("0", body, slot, data=data)

    def chunks(self, key: str = "0#C") -> list[str]:
        return [item["s"]["S"] for item in self.table.query(key, fields="s", strong=True)]


@on_each_double
@pytest.mark.parametrize("data", [b"", b"[]", b"x" * 1_000])
def test_a_small_batch_is_in_its_slot(dynamodb: Any, data: bytes) -> None:
    world, written = World(dynamodb), batch(7, count=3, data=data)
    body = world.items.body("0", written, "n")
    assert world.chunks() == []
    assert world.read(written, body) == written
    without = world.read(written, body, data=False)
    assert [entry.meta for entry in without.entries] == [entry.meta for entry in written.entries]


@on_each_double
@pytest.mark.parametrize("fork", [None, Fork(at=0, stripes=3, block=2)])
def test_a_large_batch_is_in_chunks_before_it_has_a_slot(dynamodb: Any, fork: Fork | None) -> None:
    world, written = World(dynamodb, fork), batch(7, data=LARGE)
    body = world.items.body("0", written, "n")
    assert body["c"] == {"N": "3"}
    keys = ["0#C"] if fork is None else [f"0#C#{stripe}" for stripe in range(3)]
    assert sum(len(world.chunks(key)) for key in keys) == 3
    assert world.read(written, body) == written


@on_each_double
def test_who_wants_the_index_alone_reads_no_more_chunks(dynamodb: Any) -> None:
    world, written = World(dynamodb), batch(7, data=LARGE)
    body = world.items.body("0", written, "n")
    world.table.delete("0#C", world.chunks()[1:])
    assert world.read(written, body, data=False).first_id == 7
    with pytest.raises(LogCorruptError, match="chunk 1 of slot 7 is missing"):
        world.read(written, body)


@on_each_double
def test_another_slots_batch_is_told(dynamodb: Any) -> None:
    world, written = World(dynamodb), batch(7, count=2)
    body = world.items.body("0", written, "n")
    for other in (Slot(8, 1, 2, "n"), Slot(7, 2, 2, "n"), Slot(7, 1, 3, "n")):
        with pytest.raises(LogCorruptError, match="holds another slot's batch"):
            world.items.batch_from("0", body, other, data=True)


@on_each_double
def test_a_batch_beyond_the_bound_is_refused_with_what_to_do(dynamodb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_items, "MAX_BATCH_BYTES", 2 * CHUNK_BYTES)
    world = World(dynamodb)
    with pytest.raises(LogError, match="smaller batches: maxRecords"):
        world.items.body("0", batch(7, data=LARGE), "n")
    assert world.chunks() == []
