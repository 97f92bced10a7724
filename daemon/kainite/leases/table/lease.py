"""A lease and its item in KCL's table, attribute for attribute (docs/kcl.md, *Leases*).

The table of a KCL 3.5 application also holds coordinator items. Their ``entityType`` is not ``LEASE``, and they are
passed over here.

A lease of KCL's multi-stream mode has its stream in its key (:mod:`kainite.base.shard_key`), and once more in
attributes of its own. Its parents and children are named by the ids of their shards, without the stream: the same ids
may be those of another stream's shards. So they become keys when an item is read, and ids when one is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from kainite.aws.dynamodb import Item, Value, binary, decimal, number, number_of, text, text_of, texts
from kainite.base.checkpoint import TRIM_HORIZON, Checkpoint
from kainite.base.errors import LeaseTableError
from kainite.base.shard_key import ShardKey
from kainite.kinesis.shards import HashRange, Shard
from kainite.leases.table.collected_into import COLLECTED_INTO, LogNote, log_note_of
from kainite.leases.table.request import MOVED_TO, REQUEST, LeaseRequest, RequestState, request_of


@dataclass(frozen=True, slots=True)
class PendingCheckpoint:
    """A checkpoint that a processor prepared (KCL's two-step checkpoints), with the processor's own state."""

    checkpoint: Checkpoint
    state: bytes | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """One shard's lease.

    Attributes:
        key: the shard's key.
        owner: the worker that holds the lease; None when nobody does.
        counter: raised by each take, renewal and checkpoint, and the condition of each of these writes.
        checkpoint: how far the shard is processed.
        switches: how often the owner has changed since the last checkpoint.
        parents, children: the keys of the shards before and after this one in the lineage.
        hash_range: the shard's hash keys.
        throughput: the shard's load as its owner measured it, KB/s (KCL 3).
        checkpoint_owner: during a graceful hand-over (KCL 3), the worker that may still checkpoint.
        pending: a prepared checkpoint.
        request: what a person asks of the holder (:mod:`kainite.leases.table.request`).
        moved_to: the worker that a person has moved the lease to; from that worker nobody steals it.
        log_note: who collects the shard into which log, as it was noted last.
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
    request: LeaseRequest | None = None
    moved_to: str | None = None
    log_note: LogNote | None = None

    @property
    def log(self) -> str | None:
        """Returns the log into which the owner collects units of work; None where the owner has noted none."""
        return self.log_note.log if self.log_note is not None and self.log_note.worker == self.owner else None

    @property
    def stays(self) -> bool:
        """Returns whether a person has moved the lease to its present owner."""
        return self.moved_to is not None and self.moved_to == self.owner

    @property
    def just_handed(self) -> bool:
        """Returns whether the lease was moved to its owner, and nobody has held it since."""
        request = self.request
        if request is None or request.state is not RequestState.HANDED:
            return False
        return request.to == self.owner and request.counter == self.counter

    @property
    def stream(self) -> str:
        """Returns the stream's part of the key; empty in an application of one stream."""
        return ShardKey.of(self.key).stream

    @property
    def actual_owner(self) -> str | None:
        """Returns the worker that may renew and checkpoint: during a hand-over still the previous owner."""
        return self.checkpoint_owner or self.owner

    def with_request(self, request: LeaseRequest | None) -> Lease:
        """Returns the lease with another request, or none."""
        return replace(self, request=request)

    @classmethod
    def for_shard(cls, shard: Shard, checkpoint: Checkpoint) -> Lease:
        """Returns a new lease that nobody holds yet."""
        return cls(shard.id, checkpoint=checkpoint, parents=frozenset(shard.parents), hash_range=shard.hash_range)


def is_lease(item: Item) -> bool:
    """Returns whether the item is a lease, and not one of KCL 3.5's coordinator items."""
    kind: str = item.get("entityType", {}).get("S", "LEASE")
    return kind == "LEASE" and "leaseKey" in item


def from_item(item: Item) -> Lease:
    """Reads a lease from its item; missing attributes take KCL's defaults.

    Raises:
        LeaseTableError: an attribute has another type than KCL's, or the checkpoint is not valid.
    """
    try:
        key = item["leaseKey"]["S"]
        return Lease(
            key=key,
            owner=text_of(item, "leaseOwner"),
            counter=number_of(item, "leaseCounter") or 0,
            checkpoint=_checkpoint(item, "checkpoint", "checkpointSubSequenceNumber") or TRIM_HORIZON,
            switches=number_of(item, "ownerSwitchesSinceCheckpoint") or 0,
            parents=_keys(key, item.get("parentShardId", {}).get("SS", ())),
            children=_keys(key, item.get("childShardIds", {}).get("SS", ())),
            hash_range=_hash_range(item),
            throughput=float(item["throughputKBps"]["N"]) if "throughputKBps" in item else None,
            checkpoint_owner=text_of(item, "checkpointOwner"),
            pending=_pending(item),
            request=request_of(text_of(item, REQUEST)),
            moved_to=text_of(item, MOVED_TO),
            log_note=log_note_of(text_of(item, COLLECTED_INTO)),
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        key = item.get("leaseKey", {}).get("S", "?")
        raise LeaseTableError(
            f"lease {key!r} in the lease table is not one of KCL's, repair or delete the item: {error!r}"
        ) from error


def to_item(lease: Lease) -> dict[str, Value]:
    """Returns the whole item; attributes without a value are left out, as KCL does."""
    item: dict[str, Value] = {
        "leaseKey": text(lease.key),
        "leaseCounter": number(lease.counter),
        "checkpoint": text(lease.checkpoint.sequence),
        "checkpointSubSequenceNumber": number(lease.checkpoint.sub),
        "ownerSwitchesSinceCheckpoint": number(lease.switches),
    }
    optional: dict[str, Any] = {
        "leaseOwner": lease.owner and text(lease.owner),
        "checkpointOwner": lease.checkpoint_owner and text(lease.checkpoint_owner),
        REQUEST: lease.request and text(lease.request.as_text()),
        MOVED_TO: lease.moved_to and text(lease.moved_to),
        COLLECTED_INTO: lease.log_note and text(lease.log_note.as_text()),
        "parentShardId": lease.parents and texts(shard_ids(lease.parents)),
        "childShardIds": lease.children and texts(shard_ids(lease.children)),
        "throughputKBps": None if lease.throughput is None else decimal(lease.throughput),
        **_hash_range_attributes(lease.hash_range),
        **_pending_attributes(lease.pending),
        **_stream_attributes(ShardKey.of(lease.key)),
    }
    return item | {name: value for name, value in optional.items() if value}


def shard_ids(keys: Iterable[str]) -> frozenset[str]:
    """Returns the ids of shards by their keys: the table names parents and children so."""
    return frozenset(ShardKey.of(key).shard_id for key in keys)


def _keys(of: str, ids: Iterable[str]) -> frozenset[str]:
    """Returns the keys of shards of the stream of the lease ``of``, by their ids."""
    stream = ShardKey.of(of).stream
    return frozenset(str(ShardKey(stream, shard_id)) for shard_id in ids)


def _stream_attributes(key: ShardKey) -> dict[str, Value]:
    """Returns the attributes that only multi-stream leases have (KCL's ``DynamoDBMultiStreamLeaseSerializer``)."""
    return {"streamName": text(key.stream), "shardId": text(key.shard_id)} if key.stream else {}


def _checkpoint(item: Item, name: str, sub_name: str) -> Checkpoint | None:
    sequence = text_of(item, name)
    return None if sequence is None else Checkpoint(sequence, number_of(item, sub_name) or 0)


def _pending(item: Item) -> PendingCheckpoint | None:
    checkpoint = _checkpoint(item, "pendingCheckpoint", "pendingCheckpointSubSequenceNumber")
    # KCL's serializer writes the state as a number (N) in one place, and nobody can read that back.
    state = item.get("pendingCheckpointState", {}).get("B")
    return None if checkpoint is None else PendingCheckpoint(checkpoint, state)


def _pending_attributes(pending: PendingCheckpoint | None) -> dict[str, Any]:
    if pending is None:
        return {}
    return {
        "pendingCheckpoint": text(pending.checkpoint.sequence),
        "pendingCheckpointSubSequenceNumber": number(pending.checkpoint.sub),
        "pendingCheckpointState": pending.state and binary(pending.state),
    }


def _hash_range(item: Item) -> HashRange | None:
    start, end = text_of(item, "startingHashKey"), text_of(item, "endingHashKey")
    return None if start is None or end is None else HashRange(int(start), int(end))


def _hash_range_attributes(keys: HashRange | None) -> dict[str, Value]:
    if keys is None:
        return {}
    return {"startingHashKey": text(str(keys.start)), "endingHashKey": text(str(keys.end))}
