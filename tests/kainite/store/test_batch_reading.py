"""Batches are read in order while others append: nothing is left out, and a hole is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kainite.base.errors import LogCorruptError, LogUnavailableError
from kainite.log.format.entry import Batch, Entry, EntryKind, StatusMeta
from kainite.store.batch_reading import MOST_READS
from kainite.store.dynamodb import DynamoDBStore
from support.dynamodb_doubles import on_each_double
from support.names import unique


def batch(first_id: int) -> Batch:
    return Batch(first_id, 1, 0, (Entry(EntryKind.STATUS, StatusMeta()),))


@pytest.mark.parametrize("fenced", [True, False])
@pytest.mark.parametrize("before", [0, 1])
@on_each_double
def test_what_comes_to_the_tail_between_two_requests_of_a_read_leaves_no_hole(
    dynamodb: Any, before: int, fenced: bool
) -> None:
    store = DynamoDBStore(dynamodb, unique("log"))
    store.create()
    for first_id in range(before):
        store.put_batch("0", batch(first_id), f"batch {first_id}")
    if fenced:
        store.put_fence("0", before, 1, "fence")
    ids = range(before, before + 2)

    def once(**_: Any) -> None:
        dynamodb.meta.events.unregister("after-call.dynamodb.Query", once)
        for first_id in ids:
            assert store.put_batch("0", batch(first_id), f"batch {first_id}") is None

    dynamodb.meta.events.register("after-call.dynamodb.Query", once)
    read = list(store.read_batches("0", before, strong=True))
    assert [found.first_id for found in read] == list(ids)


@on_each_double
def test_a_hole_is_told(dynamodb: Any) -> None:
    store = DynamoDBStore(dynamodb, unique("log"))
    store.create()
    for first_id in (0, 2):
        store.put_batch("0", batch(first_id), f"batch {first_id}")
    with pytest.raises(LogCorruptError, match="has no entry 1"):
        list(store.read_batches("0", 0, strong=True))


@contextmanager
def overtaken(dynamodb: Any, store: DynamoDBStore, times: int) -> Iterator[None]:
    """Puts two batches and a fence at the tail whenever a request has seen the fence there.

    Pages have one item. DynamoDB names the last key of a page that is full, also at the end; moto does not.
    """
    left = [times]

    def one_item(params: Any, **_: Any) -> None:
        params["Limit"] = 1

    def after(parsed: Any, **_: Any) -> None:
        item = next((item for item in parsed["Items"] if item["k"]["S"] == "f"), None)
        if item is not None and left[0]:
            left[0] -= 1
            parsed["LastEvaluatedKey"] = {"p": item["p"], "s": item["s"]}
            fence = int(item["s"]["S"])
            for first_id in (fence, fence + 1):
                assert store.put_batch("0", batch(first_id), f"batch {first_id}") is None
            assert store.put_fence("0", fence + 2, 1, "fence") is None

    handlers: dict[str, Any] = {"provide-client-params.dynamodb.Query": one_item, "after-call.dynamodb.Query": after}
    for name, handler in handlers.items():
        dynamodb.meta.events.register(name, handler)
    try:
        yield
    finally:  # other tests use the same client
        for name, handler in handlers.items():
            dynamodb.meta.events.unregister(name, handler)


@on_each_double
def test_a_read_that_is_overtaken_often_reads_all(dynamodb: Any) -> None:
    times = MOST_READS - 1
    store = DynamoDBStore(dynamodb, unique("log"))
    store.create()
    store.put_batch("0", batch(0), "batch 0")
    store.put_fence("0", 1, 1, "fence")
    with overtaken(dynamodb, store, times):
        read = list(store.read_batches("0", 0, strong=True))
    assert [found.first_id for found in read] == list(range(1 + 2 * times))


@on_each_double
def test_a_read_that_is_overtaken_for_ever_ends_and_may_be_tried_again(dynamodb: Any) -> None:
    store = DynamoDBStore(dynamodb, unique("log"))
    store.create()
    store.put_batch("0", batch(0), "batch 0")
    store.put_fence("0", 1, 1, "fence")
    refused = pytest.raises(LogUnavailableError, match=f"from entry 0 .* overtaken {MOST_READS} times .* try again")
    with overtaken(dynamodb, store, 10 * MOST_READS), refused:
        list(store.read_batches("0", 0, strong=True))
