"""Opens what brings the children's emits to the serialization log: the log that all daemons share, and the target's
catalogue.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from kainite.base.clock import boot_seconds
from kainite.base.errors import StoppedError, StreamError
from kainite.base.logs import event
from kainite.base.outage import wait_out
from kainite.base.waiting import side_by_side
from kainite.observe.meter import SILENT, Meter
from kainite.settings import Settings
from kainite.worker.emit_budget import EmitBudget, EmitShare
from kainite.worker.heavy_work import OFF_LOOP_BYTES, HeavyWork
from kainite.worker.retention import Retaining, tell_retention

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    from kainite.log.client import LogClient
    from kainite.peers.sharing.lease_holders import ReadHolder
    from kainite.peers.sharing.shared_log import SharedLog
    from kainite.uow.admission import Admission
    from kainite.uow.current_catalogue import CurrentCatalogue

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UnitsOfWork:
    """The parts that bring one shard's emits to the log.

    Attributes:
        log: the log; all shards of the daemon share it.
        admission: the shard's own admission of deltas.
        heavy: runs work that takes long; all shards of the daemon share it.
        catalogue: the target's tables; all shards share them; None where the catalogue is never read again.
        room: the shard's part of the budget that all shards have for emitted lines.
        stream_time: returns the time by Kinesis' clock, epoch seconds; blocks, and raises StreamError.
    """

    log: LogClient
    admission: Admission
    heavy: HeavyWork = field(default_factory=HeavyWork)
    catalogue: CurrentCatalogue | None = None
    room: EmitShare = field(default_factory=lambda: EmitBudget().share())
    stream_time: Callable[[], float] = time.time

    async def settle(self) -> None:
        """Judges the admitted deltas under the catalogue as it is now.

        When a delta does not fit, the catalogue is read again first. Afterwards everything that was admitted is judged
        under one catalogue.
        """
        if self.catalogue is None:
            return
        if self.admission.misfits:
            await self.catalogue.read_again()
        while self.admission.signing is not self.catalogue.signing:
            judging = partial(self.admission.judged_anew, self.catalogue.signing)
            self.admission.adopt(await self.heavy.run(OFF_LOOP_BYTES, judging))


class CollectedStreams(Retaining, Protocol):
    """The stream, or several, whose shards the log collects; implemented by the daemon's streams."""

    @property
    def name(self) -> str:
        """Returns the stream's name, or the streams' names, for messages."""

    def identity(self) -> object:
        """Returns the identity that the log notes as text; no other stream ever has the same. Blocks.

        Raises:
            StreamError: Kinesis does not tell it.
        """


NewUnitsOfWork: TypeAlias = Callable[[], UnitsOfWork]
"""Makes the :class:`UnitsOfWork` of another shard."""


def timed(new: NewUnitsOfWork, stream_time: Callable[[], float]) -> UnitsOfWork:
    """Makes the units of work of another shard, which asks its own stream for Kinesis' time."""
    return replace(new(), stream_time=stream_time)


@asynccontextmanager
async def open_units_of_work(
    settings: Settings,
    dynamodb: DynamoDBClient,
    group: asyncio.TaskGroup,
    stop: asyncio.Event,
    read_holder: ReadHolder,
    opened: Callable[[SharedLog], None] = lambda _: None,
    stream: CollectedStreams | None = None,
    meter: Meter = SILENT,
) -> AsyncIterator[NewUnitsOfWork | None]:
    """Joins the daemons that share the log, and reads the catalogue; yields None where units of work are disabled.

    Returns when the log is reached: this daemon owns it, or appends through its owner. Until then nothing could be
    appended, and other daemons may have the shards.

    Args:
        settings: the daemon's settings.
        dynamodb: the client for the log's table.
        group: runs the tasks that read the catalogue and share the log; a log that cannot be used fails the group.
        stop: ends the wait for a log that is not reached.
        read_holder: reads who holds a shard's lease.
        opened: called with the log, before the log's owner is reached.
        stream: what is collected: the log must be of this stream, or of several; None allows any.
        meter: takes the metrics of units and of the log, while the owner is here.

    Raises:
        StoppedError: ``stop`` was set during that wait, or while DynamoDB, Kinesis or the target was away.
        LogError: the log cannot be used, or is another stream's.
        CatalogueError: the target's tables cannot be used.
    """
    if not settings.log.enabled:
        yield None
        return
    # Imported here, so that a worker without units of work starts without these modules.
    from kainite.owner.audit.opening import open_audit
    from kainite.peers.access import access_of
    from kainite.peers.sharing.lease_holders import LeaseHolders
    from kainite.peers.sharing.shared_log import open_shared_log
    from kainite.store.dynamodb import DynamoDBStore
    from kainite.uow.admission import Admission
    from kainite.uow.catalogue.several import catalogue_of
    from kainite.uow.current_catalogue import CurrentCatalogue

    load = partial(catalogue_of, settings)
    reading = group.create_task(wait_out(load, stop, "the target, for its tables"), name="catalogue")
    store = DynamoDBStore(dynamodb, settings.log.table)
    audit = await asyncio.to_thread(open_audit, settings.log, settings.aws)
    identity = await _identity(stream, stop) if stream is not None else None
    heavy, budget = HeavyWork(), EmitBudget(settings.log.emit_bytes)
    access = await asyncio.to_thread(access_of, settings.service)
    opening = open_shared_log(
        store, settings.log, settings.uow, settings.stream.name, holders=LeaseHolders(read_holder, boot_seconds),
        audit=audit, access=access, identity=identity, meter=meter, stop=stop,
    )  # fmt: skip
    async with opening as (log, running):
        opened(log)
        watching = group.create_task(_watch(running), name="shared log")
        telling = group.create_task(tell_retention(stream, meter), name="retention") if stream is not None else None
        try:
            catalogue = CurrentCatalogue(load, await reading)
            log.judge_by(catalogue)
            await _reached(log, stop)
            yield lambda: UnitsOfWork(log, Admission(catalogue.signing), heavy, catalogue, budget.share())
        finally:
            watching.cancel()
            if telling is not None:
                telling.cancel()


async def _identity(stream: CollectedStreams, stop: asyncio.Event) -> str | None:
    """Returns the stream's identity, as soon as Kinesis tells it; None when Kinesis will never tell it."""
    try:
        return str(await wait_out(stream.identity, stop, f"stream {stream.name}, for its identity"))
    except StreamError as error:
        event(logger, logging.WARNING, "stream not identified: a stream that replaces it will not be noticed",
              error=error)  # fmt: skip
        return None


async def _watch(running: asyncio.Task[None]) -> None:
    """Waits for the task, and raises its error. To cancel this wait does not cancel the task."""
    await asyncio.shield(running)


async def _reached(log: SharedLog, stop: asyncio.Event) -> None:
    """Waits until the log is reached.

    Raises:
        StoppedError: ``stop`` was set before.
    """
    async with side_by_side(log.reached(), stop.wait()) as (reaching, stopping):
        await asyncio.wait({reaching, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not reaching.done():
            raise StoppedError(f"log {log.name.log} was not reached before the daemon was stopped")
