"""Who holds the shards' leases, as a test says."""

from __future__ import annotations

from kainite.base.errors import LogRequestError


class ShardHolders:
    """Lets every worker hold all but the given shards; implements HolderCheck of the lease holders.

    Args:
        others: the holders of shards that one worker alone holds.
    """

    def __init__(self, **others: str) -> None:
        self.others = others

    async def check(self, shard: str, worker: str) -> None:
        if not self.is_known(shard, worker):
            raise LogRequestError(f"shard {shard}: worker {worker} does not hold its lease")

    def is_known(self, shard: str, worker: str) -> bool:
        return self.others.get(shard, worker) == worker
