"""Tells whether the stream still had what comes after the last record that was read or collected.

A stream keeps records for its retention. A worker that was away for longer, or whose child or log had no room for so
long, goes on at the oldest record that is left, and Kinesis says nothing about it. So a reader asks for the very record
that it knows, and not for the one behind it: if another record comes first, the known one is gone, and what came behind
it may be gone too, unread. Nobody can have it again, so reading goes on, and the log says so. Nothing was lost where
the shard had no record for that long; neither the checkpoint nor Kinesis tells the two apart.

With units of work the known record is the last one that the log has collected of the shard, if that is a later one than
the checkpoint's: what is gone in front of it was collected.

A fan-out subscription that goes on where its last event ended has no record to ask for, and is not looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kainite.base.logs import event
from kainite.base.position import Position
from kainite.base.record import RawRecord
from kainite.kinesis.start_position import StartAt

logger = logging.getLogger(__name__)

ADVICE = (
    "the stream's retention is over for the last record that was read; unless the shard had none after it for that "
    "long, records are lost: compare the target with the source, and raise the retention"
)


class Continuity:
    """Looks at the first records that come from a place in a shard.

    Args:
        shard_id: the shard's id.
        collected: how far the serialization log has collected the shard.
    """

    def __init__(self, shard_id: str, collected: Position | None) -> None:
        self._shard_id = shard_id
        self._collected = 0 if collected is None else collected.sequence
        self._known = 0

    def begins(self, start: StartAt) -> None:
        """Takes note of where reading begins, or begins again."""
        match start.kind:
            case "AT_SEQUENCE_NUMBER":
                self._known = max(int(start.sequence or 0), self._collected)
            case "TRIM_HORIZON":
                self._known = self._collected
            case _:
                self._known = 0

    def look(self, records: Sequence[RawRecord], read: Position | None) -> Sequence[RawRecord]:
        """Looks at the records of a reply; returns those behind ``read``, the last record that was read before."""
        if records and (first := int(records[0].sequence)) and self._known:
            if first > self._known:
                event(
                    logger, logging.WARNING, "records may be gone from the stream unread",
                    shard=self._shard_id, after=self._known, next=first, advice=ADVICE,
                )  # fmt: skip
            self._known = 0
        if read is None or not records or int(records[0].sequence) > read.sequence:
            return records
        return [record for record in records if int(record.sequence) > read.sequence]
