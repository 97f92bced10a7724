"""Deletes the leases of finished shards: KCL's ``LeaseCleanupManager``, over the whole table (docs/kcl.md, *Shard
sync*).

* *Completed*: the lease is at SHARD_END, all children have leases and are under way (past TRIM_HORIZON and
  AT_TIMESTAMP), and its own parents' leases are gone. So the oldest leases go first. A lease that was deleted earlier
  would look like a shard that nobody has read. A Java worker needs the lease for nothing else: its child shards do
  not wait for a parent without a lease.
* *Garbage*: the lease is at SHARD_END without children, and the stream does not list the shard any more. A shard that
  disappeared (ResourceNotFound) ends without children, and so comes here too.

KCL's workers clean up only what they finished themselves. Here each worker checks all leases, so a dead worker's
leases do not stay. Deleting twice does no harm, and nothing is written to a deleted lease (every write has a
condition). A crash leaves leases that the next cleanup deletes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

from kainite.base.checkpoint import AT_TIMESTAMP, SHARD_END, TRIM_HORIZON
from kainite.base.logs import event
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable

logger = logging.getLogger(__name__)


def delete_leases(table: LeaseTable, keys: Collection[str]) -> None:
    """Deletes the leases ``keys``; blocks."""
    for key in keys:
        table.delete(key)
        event(logger, logging.INFO, "lease deleted", shard=key)


def completed(leases: Sequence[Lease]) -> tuple[str, ...]:
    """Returns the keys of leases whose shards are read, with children under way. ``leases`` is the whole table."""
    by_key = {lease.key: lease for lease in leases}
    return tuple(lease.key for lease in leases if _is_completed(lease, by_key))


def childless(leases: Sequence[Lease]) -> tuple[str, ...]:
    """Returns the keys of leases that are garbage if the stream does not list their shards any more.

    Args:
        leases: the whole table.
    """
    keys = {lease.key for lease in leases}
    return tuple(
        lease.key
        for lease in leases
        if lease.checkpoint == SHARD_END and not lease.children and keys.isdisjoint(lease.parents)
    )


def _is_completed(lease: Lease, by_key: Mapping[str, Lease]) -> bool:
    if lease.checkpoint != SHARD_END or not lease.children or any(parent in by_key for parent in lease.parents):
        return False
    children = [by_key.get(child) for child in lease.children]
    return all(child is not None and child.checkpoint not in (TRIM_HORIZON, AT_TIMESTAMP) for child in children)
