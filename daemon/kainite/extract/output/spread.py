"""Which shard each message of an extractor goes to; pure.

Shards are taken in turn, so that they fill evenly whatever the units are called. A record carries an explicit
hash key: the middle of its shard's range. When the stream has been resharded since the ranges were read, that key
lies in another shard, and nothing is lost; :meth:`Spread.over` puts the balance right. A unit that has begun keeps
its key: what stands in the old shard is read before what follows in its child, so the unit's order stays.

State: whose turn it is, and the keys of the units seen last. A crash forgets both. Then the records of a unit that
was under way go on through another shard, which the log does not mind: a unit may come through any shards.
"""

from __future__ import annotations

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
        by: whether a unit's records go to one shard, or in turn like all others.
        ranges: of the open shards.

    Attributes:
        units: how many there have been.
    """

    def __init__(self, by: ExtractSpread, ranges: Sequence[HashRange]) -> None:
        self.units = 0
        self._by = by
        self._keys: tuple[str, ...] = ()
        self._turn = 0
        self._units: OrderedDict[str, str] = OrderedDict()
        self.over(ranges)

    @property
    def shards(self) -> int:
        """How many there are."""
        return len(self._keys)

    def over(self, ranges: Sequence[HashRange]) -> None:
        """The stream has these open shards now.

        Raises:
            StreamError: it has none.
        """
        if not ranges:
            raise StreamError("the stream has no open shard to put records on")
        self._keys = tuple(str((r.start + r.end) // 2) for r in sorted(ranges, key=lambda r: r.start))

    def record(self, message: bytes) -> StreamRecord:
        """The record of one message; its partition key is the unit's name, or a running number without one."""
        unit = unit_of(message)
        key = self._key(unit)
        return StreamRecord(message, unit[:MAX_PARTITION_KEY] if unit else str(self._turn), key)

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
    """The hash ranges of the shards that take records."""
    return [shard.hash_range for shard in shards if shard.open and shard.hash_range]


def unit_of(message: bytes) -> str | None:
    """The unit of work that a message names: a JSON object's ``uow``. None for everything else."""
    if b'"uow"' not in message:
        return None
    try:
        value = orjson.loads(message)
    except orjson.JSONDecodeError:
        return None
    name = value.get("uow") if isinstance(value, dict) else None
    return name if isinstance(name, str) and name else None
