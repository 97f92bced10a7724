"""Records of a shard that arrived at chosen times."""

from __future__ import annotations

from support.kinesis_double import KinesisDouble

SHARD = "shardId-000000000000"
NOON = 1_760_000_000.0


def put_at(double: KinesisDouble, *arrivals: float) -> list[int]:
    """Puts records that arrive at these seconds after noon; returns their sequence numbers."""
    numbers = [double.put(b"x", shard=SHARD) for _ in arrivals]
    for record, arrival in zip(double.shards[SHARD].records[-len(arrivals) :], arrivals, strict=True):
        record["ApproximateArrivalTimestamp"] = NOON + arrival
    return numbers
