"""Runs an owner of the log without shards: ``kainite log serve``.

It takes part in sharing the log as a daemon does (:mod:`kainite.peers.sharing.shared_log`): whoever mounts the
partition owns it, does the upkeep, and is appended through; here, with no shard of its own, it only waits while another
process owns it. The command says what else the process serves (``beside``). Where ``logMetricsPort`` is set, its
metrics and its health are served: a port of its own, since a daemon of the same file may run on the same host.

Stop, on SIGTERM or SIGINT: the partitions are released, so that others mount them at once. A crash leaves leases that
run out, and nothing that was acknowledged and is not durable.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NoReturn, TypeAlias

from kainite.aws import clients as aws
from kainite.base import service_manager
from kainite.base.clock import boot_seconds
from kainite.base.errors import StoppedError
from kainite.base.file_limit import provide
from kainite.base.log_thread import log_in_thread
from kainite.base.logs import event
from kainite.base.outage import wait_out
from kainite.base.signals import until_stopped
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.contract import LogStore
from kainite.observe.health import HealthLimits, HealthReport, LogMountState, WorkerFacts, judge
from kainite.observe.meter import Meter
from kainite.observe.metric import DAEMON_METRICS
from kainite.observe.publishing import Publishers, publishing_of
from kainite.owner.audit.opening import open_audit
from kainite.peers.access import Access, access_of
from kainite.peers.sharing.lease_holders import LeaseHolders
from kainite.peers.sharing.shared_log import SharedLog, open_shared_log
from kainite.settings import MetricsLevel, Settings
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.catalogue.several import catalogue_of
from kainite.uow.current_catalogue import CurrentCatalogue
from kainite.worker.aws_threads import aws_threads, leave_unanswered_calls
from kainite.worker.file_limit import needed
from kainite.worker.log_checks import checks_of

logger = logging.getLogger(__name__)


Beside: TypeAlias = Callable[[Settings, LogStore, Access, Meter], contextlib.AbstractAsyncContextManager[None]]
"""Serves something beside the log while it is entered: given the settings, the log's store, who may connect, and a
meter."""


def run(settings: Settings, beside: Beside) -> int:
    """Runs the owner until a signal; returns the exit status.

    Raises:
        KainiteError: what ended the owner, or kept it from starting.
    """
    with log_in_thread():
        provide(needed(settings, ports=2))
        status = asyncio.run(until_stopped(lambda stop, reload: serve(settings, stop, beside, reload)))
    leave_unanswered_calls(status)
    return status


async def serve(settings: Settings, stop: asyncio.Event, beside: Beside, reload: asyncio.Event | None = None) -> None:
    """Runs the owner until ``stop`` is set.

    Args:
        settings: the process's.
        stop: ends it.
        beside: serves something else in this process meanwhile.
        reload: set to make the process read certificates and secrets again; its settings it reads once.

    Raises:
        KainiteError: the log, a file of the settings or the catalogue cannot be used.
    """
    # A daemon of the same settings file is another member.
    settings = replace(settings, log=replace(settings.log, owner=f"{settings.log.owner} serve"))
    log = settings.log
    load = partial(catalogue_of, settings)
    with aws_threads(), contextlib.suppress(StoppedError):
        catalogue = CurrentCatalogue(load, await wait_out(load, stop, "the target, for its tables"))
        dynamodb = aws.client("dynamodb", settings.aws)
        store = DynamoDBStore(dynamodb, log.table)
        holders = LeaseHolders(LeaseTable(dynamodb, settings.leases.table).holder, boot_seconds)
        audit = await asyncio.to_thread(open_audit, log, settings.aws)
        access = await asyncio.to_thread(access_of, settings.service)
        health = _Health(settings, stop)
        async with contextlib.AsyncExitStack() as stack:
            meter = await stack.enter_async_context(publishing_of(settings, _publishers(settings), health.judge))
            shared, running = await stack.enter_async_context(
                open_shared_log(
                    store, log, settings.uow, settings.stream.name, holders=holders, audit=audit,
                    access=access, meter=meter, stop=stop,
                )
            )  # fmt: skip
            health.log = shared
            shared.judge_by(catalogue)
            await stack.enter_async_context(beside(settings, store, access, meter))
            asking = asyncio.create_task(_ask(access, reload or asyncio.Event()))
            stack.callback(asking.cancel)
            event(logger, logging.INFO, "log service ready", partition=log.partition)
            service_manager.tell(service_manager.READY)
            await _until(stop, running)
    event(logger, logging.INFO, "log service stopped", partition=log.partition)


def _publishers(settings: Settings) -> Publishers:
    """Returns what is published: an endpoint where ``logMetricsPort`` asks for one, and nothing to CloudWatch."""
    return Publishers(DAEMON_METRICS, MetricsLevel.NONE, settings.service.metrics_port)


class _Health:
    """What the endpoint says of an owner without shards, which needs no lease table."""

    def __init__(self, settings: Settings, stop: asyncio.Event) -> None:
        self._limits = HealthLimits.of(settings)
        self._unit_timeout = settings.uow.timeout
        self._stop = stop
        self.log: SharedLog | None = None
        """The log, once this process takes part in it."""

    def judge(self) -> HealthReport:
        log = self.log
        if log is None or not log.is_reached:
            state = LogMountState.WAITING
        else:
            state = LogMountState.MOUNTED if log.owner is not None else LogMountState.FOLLOWING
        facts = WorkerFacts(
            reached=0.0,
            log=state,
            stopping=self._stop.is_set(),
            backlog=log.backlog() if log else "",
            followers=log.feed_lags() if log else (),
            watermark=log.held_by() if log else "",
            checks=checks_of(log, self._unit_timeout),
            access=log.access.held.problem(time.time()) if log else "",
        )
        return judge((), facts, self._limits)


async def _ask(access: Access, reload: asyncio.Event) -> NoReturn:
    """Has certificates and secrets read again each time ``reload`` is set."""
    while True:
        await reload.wait()
        reload.clear()
        access.held.ask()


async def _until(stop: asyncio.Event, running: asyncio.Task[None]) -> None:
    """Waits for a stop; raises what makes the log unusable before that."""
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({stopping, running}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
    finally:
        stopping.cancel()
