"""A lease and its item in KCL's table, attribute for attribute (reference/kcl_multilang.md §3).

The table of a KCL 3.5 application holds other kinds of items too; those carry an ``entityType``
other than ``LEASE`` and are none of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kainite.base.checkpoint import TRIM_HORIZON, Checkpoint
from kainite.base.errors import LeaseTableError
from kainite.kinesis.shards import HashRange, Shard

Item = Mapping[str, Any]
"""A DynamoDB item as the low-level client has it: ``{"leaseKey": {"S": "shardId-0"}}``."""


@dataclass(frozen=True, slots=True)
class PendingCheckpoint:
    """What a processor prepared to checkpoint (KCL's two-step checkpoints), with its own state."""

    checkpoint: Checkpoint
    state: bytes | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """One shard's lease.

    Attributes:
        key: the shard's id.
        owner: the worker that holds it; None when nobody does.
        counter: raised by each take, renewal and checkpoint; the condition of every write.
        checkpoint: how far the shard is processed.
        switches: how often the owner changed since the last checkpoint.
        parents, children: shards before and after it in the lineage.
        hash_range: the shard's hash keys.
        throughput: bytes a second that its owner measured, in KB (KCL 3).
        checkpoint_owner: during a graceful hand-over (KCL 3), the worker that may still checkpoint.
        pending: a prepared checkpoint.
    """

    key: str
    owner: str | None = None
    counter: int = 0
    checkpoint: Checkpoint = TRIM_HORIZON
    switches: int = 0
    parents: frozenset[str] = frozenset()
    children: frozenset[str] = frozenset()
    hash_range: HashRange | None = None
    throughput: float | None = None
    checkpoint_owner: str | None = None
    pending: PendingCheckpoint | None = None

    @property
    def actual_owner(self) -> str | None:
        """The worker that may renew and checkpoint: during a hand-over still the one before."""
        return self.checkpoint_owner or self.owner

    @classmethod
    def for_shard(cls, shard: Shard, checkpoint: Checkpoint) -> Lease:
        """A new lease that nobody holds yet."""
        return cls(shard.id, checkpoint=checkpoint, parents=frozenset(shard.parents), hash_range=shard.hash_range)


def is_lease(item: Item) -> bool:
    """Whether the item is a lease, and not one of KCL 3.5's coordinator items."""
    kind: str = item.get("entityType", {}).get("S", "LEASE")
    return kind == "LEASE" and "leaseKey" in item


def from_item(item: Item) -> Lease:
    """Read a lease; attributes that are missing take KCL's defaults.

    Raises:
        LeaseTableError: an attribute has another type than KCL's, or the checkpoint is none.
    """
    try:
        return Lease(
            key=item["leaseKey"]["S"],
            owner=_text(item, "leaseOwner"),
            counter=_number(item, "leaseCounter"),
            checkpoint=_checkpoint(item, "checkpoint", "checkpointSubSequenceNumber") or TRIM_HORIZON,
            switches=_number(item, "ownerSwitchesSinceCheckpoint"),
            parents=frozenset(item.get("parentShardId", {}).get("SS", ())),
            children=frozenset(item.get("childShardIds", {}).get("SS", ())),
            hash_range=_hash_range(item),
            throughput=float(item["throughputKBps"]["N"]) if "throughputKBps" in item else None,
            checkpoint_owner=_text(item, "checkpointOwner"),
            pending=_pending(item),
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        key = item.get("leaseKey", {}).get("S", "?")
        raise LeaseTableError(
            f"lease {key!r} in the lease table is not one of KCL's, mend or delete the item: {error!r}"
        ) from error


def to_item(lease: Lease) -> dict[str, Any]:
    """The whole item; attributes without a value are left out, as KCL does."""
    item: dict[str, Any] = {
        "leaseKey": {"S": lease.key},
        "leaseCounter": {"N": str(lease.counter)},
        "checkpoint": {"S": lease.checkpoint.sequence},
        "checkpointSubSequenceNumber": {"N": str(lease.checkpoint.sub)},
        "ownerSwitchesSinceCheckpoint": {"N": str(lease.switches)},
    }
    optional: dict[str, dict[str, Any]] = {
        "leaseOwner": {"S": lease.owner},
        "checkpointOwner": {"S": lease.checkpoint_owner},
        "parentShardId": {"SS": sorted(lease.parents)},
        "childShardIds": {"SS": sorted(lease.children)},
        "throughputKBps": {"N": None if lease.throughput is None else f"{lease.throughput:.6f}"},
        **_hash_range_attributes(lease.hash_range),
        **_pending_attributes(lease.pending),
    }
    return item | {name: value for name, value in optional.items() if all(value.values())}


def _text(item: Item, name: str) -> str | None:
    return item[name]["S"] if name in item else None


def _number(item: Item, name: str) -> int:
    return int(item[name]["N"]) if name in item else 0


def _checkpoint(item: Item, name: str, sub_name: str) -> Checkpoint | None:
    sequence = _text(item, name)
    return None if sequence is None else Checkpoint(sequence, _number(item, sub_name))


def _pending(item: Item) -> PendingCheckpoint | None:
    checkpoint = _checkpoint(item, "pendingCheckpoint", "pendingCheckpointSubSequenceNumber")
    # KCL's own serializer writes the state as a number in one place, where nobody can read it back.
    state = item.get("pendingCheckpointState", {}).get("B")
    return None if checkpoint is None else PendingCheckpoint(checkpoint, state)


def _pending_attributes(pending: PendingCheckpoint | None) -> dict[str, dict[str, Any]]:
    if pending is None:
        return {}
    return {
        "pendingCheckpoint": {"S": pending.checkpoint.sequence},
        "pendingCheckpointSubSequenceNumber": {"N": str(pending.checkpoint.sub)},
        "pendingCheckpointState": {"B": pending.state},
    }


def _hash_range(item: Item) -> HashRange | None:
    start, end = _text(item, "startingHashKey"), _text(item, "endingHashKey")
    return None if start is None or end is None else HashRange(int(start), int(end))


def _hash_range_attributes(keys: HashRange | None) -> dict[str, dict[str, Any]]:
    if keys is None:
        return {}
    return {"startingHashKey": {"S": str(keys.start)}, "endingHashKey": {"S": str(keys.end)}}
