"""Opens the owner of a log partition: from a mount to an owner that serves appends, and back.

=========  =======================================================  ===================================================
state      left by                                                  a crash leaves
=========  =======================================================  ===================================================
mounted    the state is loaded (:mod:`kainite.owner.loading`)       a mount without an owner: free when its lease ends
serving    the end of the context, or the owner's failure           the durable entries; the next owner begins there
ended      nothing: a log is opened again by another mount
=========  =======================================================  ===================================================

The first entry of an owner whose settings name other targets than the log does, is their assignment. Nothing is served
before it is durable.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kainite.base.clock import boot_seconds
from kainite.base.garbage import collect_rarely
from kainite.base.logs import event
from kainite.log.contract import LogStore
from kainite.observe.meter import SILENT, Meter
from kainite.owner.audit.trail import AuditTrail
from kainite.owner.loading import load_mounted
from kainite.owner.mount import Mount
from kainite.owner.owner import LogOwner
from kainite.owner.target_outcomes import assignment_entries, tell_change
from kainite.settings import LogSettings, UowSettings

_logger = logging.getLogger(__name__)


@asynccontextmanager
async def serve_log(
    store: LogStore,
    settings: LogSettings,
    uow: UowSettings,
    mounted: Mount,
    *,
    audit: AuditTrail | None = None,
    clock: Callable[[], float] = boot_seconds,
    meter: Meter = SILENT,
) -> AsyncIterator[LogOwner]:
    """Loads the state of a partition that is mounted, and serves appends; releases the partition at the end.

    Args:
        store, settings, uow: the log's store, and the settings of the log and of its units.
        mounted: the hold on the partition.
        audit: gets the units before they leave the log; None means that nothing keeps them.
        clock: measures leases, in seconds.
        meter: takes the metrics.

    Raises:
        LogFencedError, LogUnavailableError, LogCorruptError: the state was not loaded.
    """
    collect_rarely()
    state = await load_mounted(store, settings, mounted)
    event(_logger, logging.INFO, "log mounted", partition=settings.partition, generation=mounted.generation,
          next_id=state.next_id, open_units=len(state.open), units=len(state.units),
          names=len(state.recent))  # fmt: skip
    async with LogOwner(store, settings, uow, mounted, state, audit, clock, meter).running() as owner:
        await _assign_targets(owner, settings)
        yield owner


async def _assign_targets(owner: LogOwner, settings: LogSettings) -> None:
    """Notes in the log the targets that the settings name, where the log has others."""
    before = owner.state.targets.assignment
    if before != settings.targets:
        await owner.write(lambda state: assignment_entries(state, settings.targets))
        tell_change(before, settings.targets, settings.partition)
