"""Puts what the children of a stage write on the stream of the next stage (``output``).

Rules
=====

* The messages of a call are held until the call is to be made durable (:mod:`kainite.worker.call_rules`), and are then
  put. Only after PutRecords has acknowledged all of them, the call's checkpoint is written and the child gets its next
  batch.
* A stream that takes no records for the moment is tried again, with the refused messages alone; the shard waits, and
  ``/health`` tells so. A stream that does not exist or may not be written to fails the shard, which begins again at its
  checkpoint after a pause.
* A message that no stream takes fails the child before anything of its call is put. So the message's record is never
  passed over.

Order: messages of one call may be put in any order. All messages of a call are put before those of the shard's next
call. Those that name a unit of work go to one shard of the output, as long as the process lives and remembers the unit.

What a crash leaves behind
==========================

====================================  =================================================================================
before the put                        nothing: the records are delivered again, and the child answers again
in the put, or before the checkpoint  some or all of the call's messages are on the stream, and will be put once more
after the checkpoint                  nothing that must be done again
====================================  =================================================================================

A daemon that lost the shard's lease and goes on leaves the second state: its checkpoint is refused, so the next holder
puts its messages once more. Nothing is lost; messages may come more than once, at any later time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from kainite.aws import clients as aws
from kainite.base.clock import boot_seconds
from kainite.base.errors import ChildProtocolError, StreamError, StreamUnavailableError
from kainite.base.logs import event
from kainite.base.now_and_then import Counted
from kainite.base.retry import AWS_BACKOFF, Backoff, only, retry_async
from kainite.child.markers.emit_line import message_of
from kainite.kinesis.client import StreamClient
from kainite.kinesis.write.open_shards import OpenShards
from kainite.kinesis.write.put import MAX_PARTITION_KEY, MAX_RECORD_BYTES, StreamRecord, StreamWriter
from kainite.settings import Settings
from kainite.worker.emit_budget import EmitBudget, EmitShare

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient

logger = logging.getLogger(__name__)

MAX_MESSAGE: Final = MAX_RECORD_BYTES - 4 * MAX_PARTITION_KEY
"""Longest message, bytes: the partition key counts too, and a character of it takes up to four bytes."""


class OutputStream:
    """The stream that all shards of a daemon put their children's messages on.

    Args:
        kinesis: a boto3 client.
        name: the stream's name.
        shards: the stream's open shards.
        budget: bounds the messages that all shards together hold.
        backoff: pauses while the stream takes nothing.

    Attributes:
        trouble: why the stream takes nothing at this moment; empty while it does.
    """

    def __init__(
        self,
        kinesis: KinesisClient,
        name: str,
        shards: OpenShards,
        budget: EmitBudget,
        backoff: Backoff = AWS_BACKOFF,
    ) -> None:
        self.trouble = ""
        self._kinesis = kinesis
        self._name = name
        self._shards = shards
        self._budget = budget
        self._backoff = backoff
        self._put_off = Counted(boot_seconds)

    def of_shard(self) -> ShardOutput:
        """Returns what another shard puts its messages through."""
        return ShardOutput(self, self._budget.share())

    async def put(self, shard: str, messages: list[bytes]) -> None:
        """Puts messages of a shard; returns when all are on the stream, however long it takes none.

        Raises:
            StreamError: the stream does not exist, or refuses the messages for good.
        """
        records: list[StreamRecord] = []
        if not messages:
            return

        def put_off(error: Exception, failures: int, pause: float) -> None:
            self.trouble = f"output stream {self._name} takes no records: {error}"
            if times := self._put_off.happened():
                event(logger, logging.WARNING, "output put off", shard=shard, times=times, pause=pause, error=error)

        async def put() -> None:
            if not records:
                spread = await self._shards.spread()
                records.extend(map(spread.record, messages))
            await self._put(records)

        try:
            await retry_async(put, self._backoff, retryable=only(StreamUnavailableError), failed=put_off)
        except asyncio.CancelledError:
            self.trouble = ""
            raise
        except StreamError as error:
            self.trouble = f"output stream {self._name} takes no records: {error}"
            raise
        self.trouble = ""

    async def _put(self, records: list[StreamRecord]) -> None:
        writer = StreamWriter(self._kinesis, self._name)
        try:
            await asyncio.to_thread(writer.put, records)
        except asyncio.CancelledError:
            writer.give_up()
            raise


class ShardOutput:
    """One shard's messages on their way to the output stream: of the call under way, and of none before.

    Args:
        stream: takes the messages.
        room: the shard's part of the budget that all shards have for messages.
    """

    def __init__(self, stream: OutputStream, room: EmitShare) -> None:
        self._stream = stream
        self._room = room
        self._messages: list[bytes] = []

    def take(self, line: bytes) -> Awaitable[None] | None:
        """Takes the message of an emit line; returns an awaitable if the next line must wait for it, otherwise None.

        Raises:
            ChildProtocolError: the message is too long for any stream.
        """
        message = message_of(line)
        if len(message) > MAX_MESSAGE:
            raise ChildProtocolError(
                f"the child wrote a message of {len(message)} bytes; the output stream takes at most {MAX_MESSAGE}:"
                " write shorter messages"
            )
        if (waiting := self._room.take(len(message))) is None:
            self._messages.append(message)
            return None
        return self._take_in_turn(waiting, message)

    async def put(self, shard: str) -> None:
        """Puts what was taken since the last put; returns when it is on the stream.

        Raises:
            StreamError: as :meth:`OutputStream.put`.
        """
        self._room.appending = True
        await self._stream.put(shard, self._messages)
        self.drop()

    def drop(self) -> None:
        """Forgets what was taken since the last put."""
        self._messages = []
        self._room.give_back()

    async def _take_in_turn(self, waiting: Awaitable[None], message: bytes) -> None:
        await waiting
        self._messages.append(message)


NewOutput: TypeAlias = Callable[[], ShardOutput]
"""Makes the :class:`ShardOutput` of another shard."""


def output_of(settings: Settings) -> OutputStream | None:
    """Returns the output stream that the settings name; None where they name none. Makes no call to Kinesis."""
    name = settings.stream.output
    if name is None:
        return None
    kinesis = aws.client("kinesis", settings.aws)
    shards = OpenShards(StreamClient(kinesis, name), settings.extract.spread, settings.stream.shard_sync)
    return OutputStream(kinesis, name, shards, EmitBudget(settings.log.emit_bytes))
