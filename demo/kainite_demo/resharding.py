"""Reshards the demo's stream while it is in use: one shard is split, later two others are merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient
    from types_boto3_kinesis.type_defs import ShardTypeDef


class Resharding:
    """Splits the first open shard at a time, and merges the last two as much later again.

    Args:
        kinesis, stream: the stream.
        at: when the split is due, on the caller's clock.
    """

    def __init__(self, kinesis: KinesisClient, stream: str, at: float, apart: float = 5.0) -> None:
        self._kinesis = kinesis
        self._stream = stream
        self._steps = [(at + apart, self._merge), (at, self._split)]

    def look(self, now: float) -> None:
        """Starts the next step of the resharding when its time has come."""
        if self._steps and self._steps[-1][0] <= now:
            self._steps.pop()[1]()

    def _open_shards(self) -> list[ShardTypeDef]:
        shards = self._kinesis.list_shards(StreamName=self._stream)["Shards"]
        still_open = [shard for shard in shards if "EndingSequenceNumber" not in shard["SequenceNumberRange"]]
        return sorted(still_open, key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))

    def _split(self) -> None:
        shard = self._open_shards()[0]
        keys = shard["HashKeyRange"]
        middle = (int(keys["StartingHashKey"]) + int(keys["EndingHashKey"])) // 2
        self._kinesis.split_shard(
            StreamName=self._stream, ShardToSplit=shard["ShardId"], NewStartingHashKey=str(middle)
        )

    def _merge(self) -> None:
        left, right = self._open_shards()[-2:]
        self._kinesis.merge_shards(
            StreamName=self._stream, ShardToMerge=left["ShardId"], AdjacentShardToMerge=right["ShardId"]
        )
