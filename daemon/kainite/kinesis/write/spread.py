"""Chooses the shard of each message of an extractor, or of a stage with an output stream; pure.

Shards are taken in turn, so that they fill evenly whatever the units are called. A record carries an explicit
hash key: the middle of its shard's range. When the stream has been resharded since the ranges were read, the key
lies in another shard, and nothing is lost; :meth:`Spread.over` restores the balance. A unit that has begun keeps
its key: the records in the parent shard are read before those in its child shard, so the unit's order stays.

State: the next shard in turn, and the keys of the units seen last. A crash loses both. Then the records of a unit
that was under way go on through another shard, which the log accepts: a unit may come through any shards.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence

import orjson

from kainite.base.errors import StreamError
from kainite.kinesis.shards import HashRange, Shard
from kainite.kinesis.write.put import MAX_PARTITION_KEY, StreamRecord
from kainite.settings import ExtractSpread

REMEMBERED_UNITS = 10_000


class Spread:
    """Makes records of messages.

    Args:
        by: whether a unit's records go to one shard, or to all shards in turn.
        ranges: the hash ranges of the open shards.

    Attributes:
        units: how many units of work have been spread.
    """

    def __init__(self, by: ExtractSpread, ranges: Sequence[HashRange]) -> None:
        self.units = 0
        self._by = by
        self._keys: tuple[str, ...] = ()
        self._starts: tuple[int, ...] = ()
        self._turn = 0
        self._units: OrderedDict[str, str] = OrderedDict()
        self.over(ranges)

    @property
    def shards(self) -> int:
        """Returns how many shards take records."""
        return len(self._keys)

    def over(self, ranges: Sequence[HashRange]) -> None:
        """Takes the hash ranges of the shards that are open now.

        Raises:
            StreamError: no shard is open.
        """
        if not ranges:
            raise StreamError("the stream has no open shard to put records on")
        ascending = sorted(ranges, key=lambda r: r.start)
        self._keys = tuple(str((r.start + r.end) // 2) for r in ascending)
        self._starts = tuple(r.start for r in ascending)

    def record(self, message: bytes) -> StreamRecord:
        """Returns the record of one message; its partition key is the unit's name, or a running number without one."""
        unit = unit_of(message)
        key = self._key(unit)
        return StreamRecord(message, unit[:MAX_PARTITION_KEY] if unit else str(self._turn), key)

    def shard_of(self, record: StreamRecord) -> int:
        """Returns the place of the shard that takes a record, among the open shards as they are known here."""
        return bisect_right(self._starts, int(record.hash_key)) - 1

    def _key(self, unit: str | None) -> str:
        if unit is None:
            return self._take_turn()
        known = self._units.get(unit)
        key = self._take_turn() if known is None or self._by is ExtractSpread.RECORD else known
        self._units[unit] = key
        self._units.move_to_end(unit)
        self.units += known is None
        if len(self._units) > REMEMBERED_UNITS:
            self._units.popitem(last=False)
        return key

    def _take_turn(self) -> str:
        self._turn += 1
        return self._keys[self._turn % len(self._keys)]


def open_ranges(shards: Iterable[Shard]) -> list[HashRange]:
    """Returns the hash ranges of the shards that take records."""
    return [shard.hash_range for shard in shards if shard.open and shard.hash_range]


def unit_of(message: bytes) -> str | None:
    """Returns the unit of work that a message names as the ``uow`` of a JSON object; None for other messages."""
    if b'"uow"' not in message:
        return None
    try:
        value = orjson.loads(message)
    except orjson.JSONDecodeError:
        return None
    name = value.get("uow") if isinstance(value, dict) else None
    return name if isinstance(name, str) and name else None
