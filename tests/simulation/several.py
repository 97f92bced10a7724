"""Several streams with shards of the same ids, as the world's source and its incidents see them: as one.

A *plain* stream beside them carries no units of work, and its children answer nothing (:mod:`simulation.child`).
Neither the source nor the oracle knows it, and no unit may wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from kainite.base.shard_key import ShardKey, StreamId
from kainite.settings import StreamSettings
from simulation.loop import Hub
from simulation.plan import Scenario
from simulation.stream import SimShard, SimStream

ACCOUNT, REGION = "123456789012", "us-east-1"
CREATED = 7
PLAIN = "plain"


def names_of(plan: Scenario) -> tuple[str, ...]:
    """Returns the streams' names."""
    return tuple("s" if number == 0 else f"s{number}" for number in range(plan.more.streams))


def plain_of(plan: Scenario) -> tuple[str, ...]:
    """Returns the names of the plain streams."""
    return tuple(f"{PLAIN}{number}" for number in range(plan.more.plain))


def is_plain(shard: str) -> bool:
    """Tells whether a shard, given by its key, is of a plain stream."""
    id = StreamId.parsed(ShardKey.of(shard).stream)
    return id is not None and id.name.startswith(PLAIN)


def arn_of(name: str) -> str:
    return f"arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/{name}"


def named(plan: Scenario, settings: StreamSettings) -> StreamSettings:
    """Returns the settings of streams with the world's streams in them; one stream is in them already."""
    names = (*names_of(plan), *plain_of(plan))
    if len(names) == 1:
        return settings
    # With the ARN and the time of its creation nothing else is to be asked of Kinesis.
    return replace(settings, name="several", names=tuple(map(arn_of, names)), created=CREATED)


def unchanged(settings: StreamSettings) -> StreamSettings:
    """Returns the settings of an older file, which names the first stream alone."""
    return replace(settings, names=settings.names[:1])


class SimStreams:
    """One stream, or several; the hash key of a record says to which it goes."""

    def __init__(self, hub: Hub, plan: Scenario) -> None:
        self.by_name: Mapping[str, SimStream] = {
            name: SimStream(
                hub, plan.shards, iterator_life=plan.more.iterator_life, skew=plan.more.arrival_skew, number=number
            )
            for number, name in enumerate((*names_of(plan), *plain_of(plan)))
        }
        self._all = tuple(self.by_name[name] for name in names_of(plan))
        for name in plain_of(plan):
            self.by_name[name].put(0, b"a record that no unit of work is in")

    @property
    def is_read(self) -> bool:
        """Tells whether somebody has begun to read a shard of each stream."""
        return all(stream.is_read for stream in self._all)

    @property
    def open(self) -> list[SimShard]:
        return [shard for stream in self._all for shard in stream.open]

    @property
    def filled(self) -> list[str]:
        """Returns the keys of the shards that have records."""
        return [self._key(stream, name) for stream in self._all for name in stream.filled]

    def put(self, hash_key: int, data: bytes) -> None:
        """Appends a record to the shard that holds the hash key, of one of the streams."""
        self._all[self._number(hash_key)].put(hash_key, data)

    def put_together(self, records: Sequence[tuple[int, bytes]]) -> None:
        """Appends records as the KPL does, stream by stream."""
        placed = sorted(((self._number(key), place) for place, (key, _) in enumerate(records)))
        for number, group in groupby(placed, itemgetter(0)):
            self._all[number].put_together([records[place] for _, place in group])

    def trim(self, age: float) -> list[tuple[str, int, bytes]]:
        """Deletes the records that arrived longer ago; returns their shards' keys, sequence numbers and data."""
        return [(self._key(stream, name), *rest) for stream in self._all for name, *rest in stream.trim(age)]  # type: ignore[misc]

    def split(self, shard: SimShard) -> None:
        self._of(shard).split(shard)

    def merge(self, one: SimShard, other: SimShard) -> None:
        """Merges two shards of one stream whose hash keys are neighbours."""
        if self._of(one) is self._of(other):
            self._of(one).merge(one, other)

    def _number(self, hash_key: int) -> int:
        return (hash_key >> 100) % len(self._all)  # the lower bits of such numbers are zeros

    def _of(self, shard: SimShard) -> SimStream:
        return next(stream for stream in self._all if stream.shards.get(shard.name) is shard)

    def _key(self, stream: SimStream, name: str) -> str:
        if len(self.by_name) == 1:
            return name
        of = next(one for one, found in self.by_name.items() if found is stream)
        return str(ShardKey(str(StreamId(ACCOUNT, of, CREATED)), name))
