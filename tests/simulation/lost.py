"""Records that vanish from the stream: whoever reads on behind them must say so, and must not cry wolf.

What vanished may have been read before. So only a transaction that is missing in the end shows that one of its records
was lost. Where the log had nothing of a shard yet, or no record comes behind those that vanished, no reader can know
that others were there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class Lost:
    """The records that have vanished.

    Attributes:
        shards: from which shards.
        numbers: of the transactions of which there were deltas in them.
        told: the shards of which a reader said so.
        knowable: whether the log had something of each shard before.
    """

    shards: set[str] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)
    told: set[str] = field(default_factory=set)
    knowable: bool = True

    def add(self, records: Sequence[tuple[str, int, bytes]], collected: Mapping[str, object]) -> None:
        """Adds records that vanished: shard, number and data; ``collected`` has the shards that the log knows."""
        for shard, _, data in records:
            self.shards.add(shard)
            self.numbers |= {int(number) for number in re.findall(rb'"T-(\d+)"', data)}
            self.knowable = self.knowable and shard in collected

    def judged(self, there: Collection[int], filled: Collection[str]) -> str | None:
        """Returns what is wrong, by the transactions that are in the target, and the shards that have records now."""
        missing = self.numbers - set(there)
        if not missing or self.told or not self.knowable or not self.shards <= set(filled):
            return None
        return f"records of T-{min(missing)} vanished from the stream unread, and nobody was told"
