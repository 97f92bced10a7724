"""Safeguards of reading the stream: aggregates, expired iterators, vanished records; and how soon they are missed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kainite.base.shard_key import ShardKey
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


class _ByShardIdAlone(dict[str, Any]):
    """Positions under the ids of shards, which those of other streams have too."""

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(ShardKey.of(key).shard_id, default)

    def __setitem__(self, key: str, position: Any) -> None:
        super().__setitem__(ShardKey.of(key).shard_id, position)


def _positions_by_shard_id(original: Any) -> Any:
    """Keeps the positions in the log by the shards' ids."""

    def made(self: Any) -> None:
        original(self)
        self.positions = _ByShardIdAlone()

    return made


def _of_one_stream(original: Any) -> Any:
    """Reports the shards of one stream alone."""

    def reading(*arguments: Any) -> Any:
        report = original(*arguments)
        if report is None or not report.shards:
            return report
        last = max(ShardKey.of(shard).stream for shard in report.shards)
        return replace(report, shards=frozenset(ls for ls in report.shards if ShardKey.of(ls).stream == last))

    return reading


def _awaits_nothing(original: Any) -> Any:
    """Takes for all streams those that the reports name."""
    return lambda self, clock, _: original(self, clock)


def _forgets_awaited(original: Any) -> Any:
    """Lets each owner begin without the streams that an earlier one awaited."""

    async def loaded(*arguments: Any) -> Any:
        state = await original(*arguments)
        state.awaited.clear()
        return state

    return loaded


def _all_are_collected(original: Any) -> Any:
    """Counts a stream without units of work among what is to be read."""
    return lambda leases, streams: (leases, frozenset(streams))


def _of_open_shards(original: Any) -> Any:
    """Leaves out who was open when the log began and is closed now, as KCL does at LATEST."""
    return lambda shards, checkpoints, initial, *since: original(shards, checkpoints, initial)


OF_THE_STREAM: tuple[Mutation, ...] = (
    Mutation("places in an aggregate", f"{READ}.record_batch:expand", _without_places, 60, aim="aggregates"),
    Mutation("an iterator goes on where the last one ended", f"{READ}.polling:start_at", _newest, 40, aim="aggregates"),
    Mutation("what has vanished is told", f"{READ}.continuity:Continuity.begins", answering(None), 60, aim="retention"),
    Mutation("what the log has is known", f"{READ}.polling:Continuity", lambda original: lambda shard, _:
             original(shard, None), 100, aim="retention"),
    Mutation("positions by stream and shard", "kainite.log.state.folded:FoldedLog.__init__", _positions_by_shard_id,
             100, aim="two streams"),
    Mutation("a stream without leases is awaited", "kainite.log.collecting.reported_shards:ReportedShards.__init__",
             _awaits_nothing, 40, aim="added stream"),
    Mutation("later owners await it, too", "kainite.owner.serving:load_mounted", _forgets_awaited, 40,
             aim="added stream"),
    Mutation("the watermark is over all streams", "kainite.worker.reading_reports:_reading", _of_one_stream, 40,
             aim="added stream"),
    Mutation("no unit waits for a plain stream", "kainite.leases.taking.taker:to_be_collected", _all_are_collected, 10,
             aim="plain stream"),
    Mutation("leases of what was open at the beginning", "kainite.leases.shard_sync.create_leases:missing_leases",
             _of_open_shards, 100, aim="first leases"),
)  # fmt: skip

RARELY_SEEN: tuple[Mutation, ...] = (
    Mutation("the rest of an aggregate", f"{READ}.polling:start_at", _after, 400, aim="aggregates"),
)  # fmt: skip
"""A child must die behind a checkpoint in the middle of an aggregate, before the rest of it is in the log."""
