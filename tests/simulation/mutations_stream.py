"""Safeguards of reading the stream: aggregates, expired iterators, vanished records; and how soon they are missed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simulation.mutation import Mutation, answering

READ = "kainite.kinesis.read"


def _after(original: Any) -> Any:
    """Begins behind the record of the checkpoint, which may be an aggregate that was read in part."""

    def start_at(*arguments: Any) -> Any:
        found = original(*arguments)
        return replace(found, kind="AFTER_SEQUENCE_NUMBER") if found.kind == "AT_SEQUENCE_NUMBER" else found

    return start_at


def _without_places(original: Any) -> Any:
    """Gives the records of an aggregate no places in it."""
    return lambda records, *more: [replace_place(record) for record in original(records, *more)]


def replace_place(record: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(record, sub=None)


def _newest(original: Any) -> Any:
    """Begins at the newest record when an iterator has expired."""
    from kainite.kinesis.start_position import StartAt

    return lambda start, fetched, *more: StartAt("LATEST") if fetched else original(start, fetched, *more)


def _of_open_shards(original: Any) -> Any:
    """Leaves out who was open when the log began and is closed now, as KCL does at LATEST."""
    return lambda shards, checkpoints, initial, *since: original(shards, checkpoints, initial)


OF_THE_STREAM: tuple[Mutation, ...] = (
    Mutation("places in an aggregate", f"{READ}.record_batch:expand", _without_places, 60, aim="aggregates"),
    Mutation("an iterator goes on where the last one ended", f"{READ}.polling:start_at", _newest, 40, aim="aggregates"),
    Mutation("what has vanished is told", f"{READ}.continuity:Continuity.begins", answering(None), 60, aim="retention"),
    Mutation("what the log has is known", f"{READ}.polling:Continuity", lambda original: lambda shard, _:
             original(shard, None), 100, aim="retention"),
    Mutation("leases of what was open at the beginning", "kainite.leases.shard_sync.create_leases:missing_leases",
             _of_open_shards, 100, aim="first leases"),
)  # fmt: skip

RARELY_SEEN: tuple[Mutation, ...] = (
    Mutation("the rest of an aggregate", f"{READ}.polling:start_at", _after, 400, aim="aggregates"),
)
"""A child must die behind a checkpoint in the middle of an aggregate, before the rest of it is in the log."""
