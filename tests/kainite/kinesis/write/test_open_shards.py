"""The shards that records are spread over: listed once for all that ask at once, and again when that is long ago."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.kinesis.shards import Shard
from kainite.kinesis.write.open_shards import OpenShards
from kainite.settings import ExtractSpread


class Listing:
    """A stream that lists so many shards, or fails, one answer after the other."""

    def __init__(self, *answers: int | StreamError) -> None:
        self.answers = list(answers)

    def list_shards(self) -> tuple[Shard, ...]:
        answer = self.answers.pop(0)
        if isinstance(answer, StreamError):
            raise answer
        return tuple(Shard.from_listing(_listed(number)) for number in range(answer))


def _listed(number: int) -> Any:
    return {
        "ShardId": f"shardId-{number:012}",
        "HashKeyRange": {"StartingHashKey": str(number * 100), "EndingHashKey": str(number * 100 + 99)},
        "SequenceNumberRange": {"StartingSequenceNumber": "1"},
    }


def over(listing: Any, refresh: float) -> OpenShards:
    return OpenShards(listing, ExtractSpread.UNIT, refresh)


async def test_tasks_that_ask_at_once_share_one_listing() -> None:
    shards = over(Listing(2), 60)
    spreads = await asyncio.gather(*(shards.spread() for _ in range(5)))
    assert {id(spread) for spread in spreads} == {id(spreads[0])}
    assert spreads[0].shards == 2


async def test_shards_are_listed_again_and_the_old_ones_do_while_nobody_answers() -> None:
    shards = over(Listing(2, StreamUnavailableError("away"), 4), 0)
    assert [(await shards.spread()).shards for _ in range(3)] == [2, 2, 4]


async def test_a_first_listing_that_fails_is_made_again_at_the_next_call() -> None:
    shards = over(Listing(StreamUnavailableError("away"), 3), 60)
    with pytest.raises(StreamUnavailableError):
        await shards.spread()
    assert (await shards.spread()).shards == 3
