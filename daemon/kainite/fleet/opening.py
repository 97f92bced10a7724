"""Makes the parts of a worker of the fleet from the settings, and runs it beside the daemon."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING

from kainite.base.errors import SettingsError
from kainite.base.logs import event
from kainite.base.process_identity import from_text, this_process
from kainite.fleet.declared import declared_duties
from kainite.fleet.model.dormancy import is_dormant
from kainite.fleet.model.records import Worker
from kainite.fleet.programs.commands import HostCommands
from kainite.fleet.programs.programs import DutyPrograms
from kainite.fleet.service import FleetService
from kainite.fleet.steps.member import FleetMember
from kainite.fleet.steps.timing import Timing
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.observe.meter import SILENT, Meter
from kainite.settings import FleetSettings, Settings

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

logger = logging.getLogger(__name__)


@asynccontextmanager
async def duties_beside(
    settings: Settings, dynamodb: DynamoDBClient, stop: asyncio.Event, meter: Meter = SILENT
) -> AsyncIterator[None]:
    """Runs this worker's duties until ``stop`` is set and they have ended; does nothing where ``fleet`` is off.

    Args:
        settings: all settings of the application.
        dynamodb: the client for the fleet's table.
        stop: ends the duties; set by an operator's message, too.
        meter: takes the fleet's figures.

    Raises:
        SettingsError: a declared duty is wrong.
        FleetError: the table is missing, or refuses; ``stop`` is set then.
    """
    if not settings.fleet.enabled:
        yield
        return
    service, grace = _service(settings, dynamodb, stop, meter)
    running = asyncio.create_task(service.run(stop, grace), name="duties")
    running.add_done_callback(lambda _: stop.set())
    try:
        yield
        stop.set()
        await running
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def timing_of(fleet: FleetSettings) -> Timing:
    """Returns the fleet's times."""
    return Timing(ping=fleet.ping, timeout=fleet.timeout, rebalance=fleet.rebalance)


def _service(
    settings: Settings, dynamodb: DynamoDBClient, stop: asyncio.Event, meter: Meter
) -> tuple[FleetService, float]:
    fleet, timing, news = settings.fleet, timing_of(settings.fleet), asyncio.Event()
    declared = declared_duties(fleet)
    if settings.path is None and any(not duty.work.command and not duty.work.properties for duty in declared):
        raise SettingsError("fleetDuties needs a settings file, which its programs read: kainite run -p FILE")
    me = Worker(
        settings.leases.worker_id,
        incarnation="",
        labels=fleet.labels,
        capacity=fleet.capacity,
        process=this_process().as_text(),
        declared=tuple(duty.name for duty in declared),
        allowed=fleet.commands,
    )
    member = FleetMember(me, timing, declared, _is_gone, _dormancy(fleet.dormant))
    commands = HostCommands(
        {duty.name: duty.work for duty in declared}, frozenset(fleet.commands), settings.path, fleet.aws_profile
    )
    programs = DutyPrograms(commands, timing.lease, news.set)
    store = DynamoDBFleetStore(dynamodb, fleet.table, fleet.history_days)
    grace = max((duty.work.stop_grace for duty in declared), default=0.0)
    event(logger, logging.INFO, "fleet joined", table=fleet.table, worker=me.name, declared=len(declared))
    service = FleetService(store, member, programs, timing, news, stop.set, meter)
    return service, max(grace, settings.child.shutdown_grace)


def _is_gone(process: str) -> bool:
    identity = from_text(process)
    return identity is not None and identity.is_gone(this_process())


def _dormancy(expression: str | None) -> Callable[[], bool]:
    if expression is None:
        return lambda: False
    try:
        is_dormant(expression, datetime.now())
    except ValueError as error:
        raise SettingsError(f"fleetDormant {error}") from error
    return lambda: is_dormant(expression, datetime.now())
