"""Opens what brings the children's emits to the serialization log: the log's owner and the target's catalogue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from kainite.settings import Settings
from kainite.worker.heavy_work import OFF_LOOP_BYTES, HeavyWork

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    from kainite.log.client import LogClient
    from kainite.log.owner.owner import LogOwner
    from kainite.uow.admission import Admission
    from kainite.uow.current_catalogue import CurrentCatalogue


@dataclass(frozen=True, slots=True)
class UnitsOfWork:
    """The parts that bring one shard's emits to the log.

    Attributes:
        log: shared by all shards of the daemon.
        admission: the shard's own.
        heavy: runs what takes long; shared by all shards of the daemon.
        catalogue: the target's tables, shared by all shards; None where none is read again.
    """

    log: LogClient
    admission: Admission
    heavy: HeavyWork = field(default_factory=HeavyWork)
    catalogue: CurrentCatalogue | None = None

    async def settle(self) -> None:
        """Has what was admitted judged under the catalogue as it is now.

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


Backlog: TypeAlias = Callable[[], str]
"""Says why the log takes no more from the shards; an empty text while it does."""

NewUnitsOfWork: TypeAlias = Callable[[], UnitsOfWork]
"""Makes the :class:`UnitsOfWork` of another shard."""


@asynccontextmanager
async def open_units_of_work(
    settings: Settings,
    dynamodb: DynamoDBClient,
    group: asyncio.TaskGroup,
    stop: asyncio.Event,
    mounted: Callable[[Backlog], None] = lambda _: None,
) -> AsyncIterator[NewUnitsOfWork | None]:
    """Mounts the log and reads the catalogue; yields None where units of work are disabled.

    Args:
        settings: of the daemon.
        dynamodb: the client for the log's table.
        group: runs the tasks that read the catalogue and watch the owner; a fenced log fails the group.
        stop: ends the wait for a log that another owner holds.
        mounted: is told once the log is mounted how to ask for its backlog.

    Raises:
        LogHeldError: ``stop`` was set during that wait.
        LogError: the log cannot be mounted.
        CatalogueError: the target's tables cannot be used.
    """
    if not settings.log.enabled:
        yield None
        return
    # Imported here, so that a worker without units of work starts without these modules.
    from kainite.log.audit.opening import open_audit
    from kainite.log.owner.owner import LogOwner
    from kainite.log.store.dynamodb import DynamoDBStore
    from kainite.uow.admission import Admission
    from kainite.uow.catalogue.load import load_catalogue
    from kainite.uow.current_catalogue import CurrentCatalogue

    apply = settings.apply
    load = partial(load_catalogue, settings.uow.catalogue_file, apply.target, apply.schemas)
    reading = group.create_task(CurrentCatalogue.read(load), name="catalogue")
    store = DynamoDBStore(dynamodb, settings.log.table)
    audit = await asyncio.to_thread(open_audit, settings.log, settings.aws)
    heavy = HeavyWork()
    async with LogOwner.open(store, settings.log, settings.uow, audit=audit, stop=stop) as owner:
        mounted(lambda: str(owner.backlog() or ""))
        watching = group.create_task(_watch(owner), name="log owner")
        try:
            catalogue = await reading
            owner.judge_by(catalogue)
            yield lambda: UnitsOfWork(owner, Admission(catalogue.signing), heavy, catalogue)
        finally:
            watching.cancel()


async def _watch(owner: LogOwner) -> NoReturn:
    raise await owner.failed()
