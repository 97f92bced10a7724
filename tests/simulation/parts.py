"""The real daemon and the real apply job as simulated processes, and what they get of the simulated world.

Kainite's own code runs as it is. Replaced are the edges alone: boto3's clients, the log's store, the child's pipes, the
clocks, threads and random numbers. The edges are looked up in the modules that use them, so a seam is a module's name
and no parameter that only tests would pass.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import kainite.base.process_identity
import kainite.child.process
import kainite.kinesis.read.continuity
import kainite.leases.keeper
import kainite.log.state.snapshot
import kainite.owner.audit.opening
import kainite.owner.mount
import kainite.owner.owner
import kainite.peers.accepted
import kainite.peers.access
import kainite.peers.address
import kainite.peers.feed.queue
import kainite.peers.sharing.shared_log
import kainite.store.batch_items
import kainite.store.dynamodb
import kainite.store.memory
import kainite.uow.admission
import kainite.uow.catalogue.several
import kainite.waltz.client
import kainite.worker.daemon_streams
import kainite.worker.log_service
import kainite.worker.supervisor
import kainite_spark.driver.feeding
import kainite_spark.driver.outcome_writer
import kainite_spark.executor.tasks
import kainite_spark.targets.sqlite.rendering
from kainite.base.address import Address
from kainite.base.errors import KainiteError
from kainite.leases.stance import Stance
from kainite.log.contract import Fork
from kainite.log.state.folded import FoldedLog
from kainite.observe.meter import SILENT
from kainite.peers.access import Access
from kainite.peers.feed.following import LogFeed
from kainite.settings import (
    ApplySettings,
    AwsSettings,
    ChildSettings,
    Consistency,
    InitialPosition,
    LeaseSettings,
    LogSettings,
    OnFailure,
    ServiceSettings,
    Settings,
    StreamSettings,
    UowEnd,
    UowOrder,
    UowSettings,
)
from kainite.settings.assignment import NO_TARGETS, TableAssignment
from kainite.store.log_table import LogTable
from kainite.uow.admission import Admission
from kainite_spark.driver.current_target import CurrentTarget
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.feeding import feed_of
from kainite_spark.driver.job import ApplyJob
from kainite_spark.driver.patience import patiently
from kainite_spark.executor.apply_options import ApplyOptions, Retry
from kainite_spark.executor.group_commit import apply_units
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.sqlite.rendering import quoted
from simulation.child import SimPipes
from simulation.faults import Faults
from simulation.loop import EPOCH, Hub, Process, SimEvent, SimThreading, SimTime
from simulation.network import SimNetwork
from simulation.plan import Scenario
from simulation.runner import SimRunner
from simulation.second_target import ASSIGNMENT
from simulation.several import named, plain_of

BLOCK = 4
"""Ids in a block of a striped partition: a history has few."""

_REAL: dict[str, Any] = {
    "time": time,
    "threading": threading,
    "uuid": uuid,
    "this_process": kainite.base.process_identity.this_process,
}


class _Membership:
    """Stands for a fleet of KCL 2: every worker takes its share."""

    stance = staticmethod(lambda: Stance.SHARE)

    def __init__(self, *_: Any) -> None:
        pass

    async def begin(self) -> None:
        pass

    async def run(self) -> None:
        await asyncio.Event().wait()


@contextlib.contextmanager
def edges(
    hub: Hub,
    faults: Faults,
    plan: Scenario,
    *,
    client: Callable[[str, Process], Any],
    store_of: Callable[[Process], Any],
    catalogue: Callable[[Process], Any],
    told: Callable[[str], None] = lambda _: None,
) -> Iterator[None]:
    """Puts the simulated world in the place of the real one."""
    clocks = SimTime(hub)
    tasks, rendering = kainite_spark.executor.tasks, kainite_spark.targets.sqlite.rendering

    def me() -> Process:
        assert hub.process is not None
        return hub.process

    numbers = random.Random(f"tokens {faults.seed}")
    shims: dict[str, Any] = {
        "time": clocks,
        "threading": SimThreading(hub),
        "this_process": lambda: _identity(me()),
        "uuid": SimpleNamespace(uuid4=lambda: uuid.UUID(int=numbers.getrandbits(128), version=4)),
    }
    SimPipes.faults = faults
    SimPipes.living.clear()
    random.seed(faults.seed)
    supervisor, accepted = kainite.worker.supervisor, kainite.peers.accepted
    owner, programs = kainite.worker.log_service, kainite.waltz.client
    clients = SimpleNamespace(client=lambda service, settings: client(service, me()))
    hub.network = SimNetwork(hub, faults)

    def access(_: Any) -> Access:
        return Access() if plan.more.loopback else Access(Address(me().host, 0))

    with contextlib.ExitStack() as stack:
        for module, name in _users():
            stack.enter_context(mock.patch.object(module, name, shims[name]))
        for place, name, value in (
            (supervisor, "aws", SimpleNamespace(client=lambda service, settings: client(service, me()))),
            (
                kainite.worker.daemon_streams,
                "aws",
                SimpleNamespace(client=lambda service, settings: client(service, me())),
            ),
            (supervisor, "Membership", _Membership),
            (owner, "aws", clients),
            (owner, "aws_threads", contextlib.nullcontext),
            (owner, "DynamoDBStore", lambda *_: store_of(me())),
            (owner, "access_of", access),
            (owner, "catalogue_of", lambda *_, **__: catalogue(me())),
            (programs, "random", SimpleNamespace(SystemRandom=lambda: numbers)),
            (kainite.peers.access, "access_of", access),
            (kainite.peers.address, "network_stack", lambda: me().host),
            (accepted.logger, "exception", lambda *_: hub.errors.append(_present_error())),
            (kainite.store.dynamodb, "DynamoDBStore", lambda *_: store_of(me())),
            (kainite.uow.catalogue.several, "catalogue_of", lambda *_, **__: catalogue(me())),
            (kainite.kinesis.read.continuity, "event", lambda *_, shard, **__: told(shard)),
            (FoldedLog, "apply", _taking(plan.more.entry_cost, hub, FoldedLog.apply)),
            (Admission, "feed", _taking(plan.more.entry_cost, hub, Admission.feed)),
            (kainite.leases.keeper, "Random", lambda *_: random.Random(f"{faults.seed} {me().name}")),
            (kainite.child.process, "PipedProcess", SimPipes),
            (kainite.base.process_identity, "_exists", lambda pid: _started(me(), pid) is not None),
            (kainite.base.process_identity, "start_time", lambda pid: _started(me(), pid)),
            (kainite.log.state.snapshot, "PART_BYTES", plan.more.part_bytes),
            (kainite.owner.mount, "Fork", functools.partial(Fork, block=BLOCK)),
            (kainite.store.batch_items, "CHUNK_BYTES", plan.more.chunk_bytes),
            (kainite.store.dynamodb, "LogTable", functools.partial(LogTable, sleep=clocks.sleep)),
            (kainite_spark.driver.outcome_writer, "TIDY_EVERY", plan.more.tidy_every),
            (kainite.peers.feed.queue, "MAX_QUEUED", plan.more.feed_queue),
            (kainite_spark.driver.feeding, "CREDIT", plan.more.feed_credit),
            (tasks, "apply_units", functools.partial(apply_units, sleep=clocks.sleep, clock=clocks.monotonic)),
            (rendering, "quoted", lambda name: quoted(name.removesuffix("_part"))),
        ):
            stack.enter_context(mock.patch.object(place, name, value))
        before = logging.root.manager.disable
        if not logging.getLogger("simulation").isEnabledFor(logging.DEBUG):
            logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(before)


def _taking(seconds: float, hub: Hub, work: Callable[..., Any]) -> Callable[..., Any]:
    """Returns work that takes processor time of the process that does it; where the world itself does it, none."""
    if not seconds:
        return work

    def taking(self: Any, *arguments: Any) -> Any:
        if hub.process is not None:
            hub.process.compute(seconds)
        return work(self, *arguments)

    return taking


def _present_error() -> BaseException:
    error = sys.exc_info()[1]
    assert error is not None
    return error


def _identity(process: Process) -> kainite.base.process_identity.ProcessIdentity:
    """Returns what a simulated process knows of itself; a host's name stands for its boot."""
    return kainite.base.process_identity.ProcessIdentity(
        process.name, process.host, boot=process.host, namespaces="one", pid=process.pid, started=process.started
    )


def _started(here: Process, pid: int) -> int | None:
    """Returns the number of the process that has this process id on the host now; None for none."""
    living = (one for one in here.hub.processes if one.host == here.host and one.pid == pid and not one.dead)
    return next((one.started for one in living), None)


def _users() -> Iterator[tuple[ModuleType, str]]:
    """Yields the modules of Kainite that look at clocks or at themselves, start threads or make tokens."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("kainite.", "kainite_spark.")) and module is not kainite.store.memory:
            for wanted, real in _REAL.items():
                if getattr(module, wanted, None) is real:
                    yield module, wanted


def settings_of(plan: Scenario, worker: str) -> Settings:
    """Returns a daemon's settings."""
    grace = plan.more.grace
    order = UowOrder.TIME if grace else UowOrder.DENSE if plan.spread else UowOrder.ARRIVAL
    return Settings(
        path=None,
        aws=AwsSettings(),
        stream=named(plan, StreamSettings(
            "s", initial_position=InitialPosition(plan.more.start or "TRIM_HORIZON"),
            # The history's first record may have an arrival time before the beginning: a shard's clock may be behind.
            initial_timestamp=EPOCH - plan.more.arrival_skew,
            idle_between_reads=1.0, parent_poll=1.0, shard_sync=10.0, list_shards_backoff=0.5,
        )),
        leases=LeaseSettings("a", "a", worker, failover=4.0, init_backoff=0.5),
        child=ChildSettings(("child",), shutdown_grace=3.0, kill_after=1.0, restart_backoff_max=5.0),
        log=LogSettings(
            "l", worker, enabled=True, lease=5.0, heartbeat=1.5, poll=1.0, snapshot_entries=plan.snapshot_entries,
            put_interval=0.05, batch_bytes=2_000, backlog_units=plan.more.backlog_units or 200_000,
            emit_bytes=plan.more.emit_bytes, targets=_assignment(plan),
        ),
        uow=UowSettings(
            order=order, timeout=plan.uow_timeout, dedup_window=plan.more.window,
            end=UowEnd.WATERMARK if grace else UowEnd.MARKER, grace=grace,
        ),
        apply=ApplySettings(),
        of_streams={name: {("log", "enabled"): False} for name in plain_of(plan)},
    )  # fmt: skip


def _assignment(plan: Scenario) -> TableAssignment:
    """Returns what the log notes of the targets: nothing where one apply job serves both."""
    return ASSIGNMENT if plan.more.two_targets and not plan.more.atomic else NO_TARGETS


def settings_of_owner(plan: Scenario, worker: str) -> Settings:
    """Returns the settings of ``kainite log serve`` with one partition for applications."""
    assert plan.more.programs is not None
    settings = settings_of(plan, worker)
    log = replace(settings.log, batch_bytes=plan.more.programs.batch_bytes)
    return replace(settings, log=log, service=ServiceSettings(applications=1))


async def run_daemon(settings: Settings, stop: asyncio.Event) -> None:
    """Runs the daemon as ``kainite run`` does, without signals, metrics and a pool of threads."""
    daemon = kainite.worker.supervisor._Daemon(  # noqa: SLF001 - what supervise() runs
        settings, stop, asyncio.Event()
    )
    await daemon.run(SILENT)


@dataclass(frozen=True, slots=True)
class ApplyParts:
    """The simulated world as one apply job needs it.

    Attributes:
        store: of the log.
        load: reads the target's catalogue.
        opened: opens the target with a catalogue.
        wrapped: what a process has of an opened target.
        runner_of: makes the runner of an opened target.
        beside: runs a feed beside the job.
        name: the target's name, where there are two.
        ledger: the log's name in the target.
        taking: what the log takes of the target's tables, with a catalogue; None where nobody takes any.
    """

    store: Any
    load: Callable[[], Any]
    opened: Callable[[Any], Any]
    wrapped: Callable[[Any], Any]
    runner_of: Callable[[Any, ApplyOptions], SimRunner]
    beside: Callable[[LogFeed], None]
    name: str = ""
    ledger: str = "log/0"
    taking: Callable[[Any], LogTables] | None = None


def run_apply_job(plan: Scenario, owner: str, parts: ApplyParts, stop: SimEvent, *, adopts: bool = False) -> None:
    """Runs the apply job as ``kainite apply`` does, on a strand; ``adopts``: with ``--adopt-target``."""
    more = plan.more
    settings = ApplySettings(
        lease=5.0, idle=0.5, max_units=plan.max_units, group_units=plan.group_units, instances=plan.instances,
        consistency=Consistency.PREFIX if more.prefix else Consistency.CONFLICT,
        on_failure=OnFailure.STOP if more.stop else OnFailure.BLOCK,
        feed_bytes=more.feed_bytes,
    )  # fmt: skip
    try:
        catalogue = patiently(parts.load, stop)  # type: ignore[arg-type]
    except KainiteError:
        return  # told to stop while the target was away
    target = parts.opened(catalogue)
    patiently(lambda: _taking_tables(parts, catalogue, target), stop)  # type: ignore[arg-type]
    options = ApplyOptions(more.stop, plan.group_units, retry=Retry(3, 0.0, 0.0), fold=more.fold)
    runner = parts.runner_of(target, options)
    opening = functools.partial(_opening, parts)
    current = CurrentTarget(parts.load, opening, catalogue, clock=SimTime(stop.hub).monotonic)
    current.tell(runner.retarget)
    feed = feed_of(parts.store, LogSettings("l", ""), settings, Access(), owner) if more.feed_credit > 0 else None
    environment = ApplyEnvironment(
        settings, parts.store, "0", owner, parts.wrapped(target), runner, parts.ledger, current, feed=feed,
        adopts=adopts, name=parts.name, tables=_tables_of_now(parts),
    )  # fmt: skip
    if feed is not None:
        parts.beside(feed)
    ApplyJob(environment, stop).run()  # type: ignore[arg-type]


def _tables_of_now(parts: ApplyParts) -> Callable[[], LogTables] | None:
    """Returns what reads the catalogue and tells what the log takes; None where nobody takes tables."""
    taking = parts.taking
    return None if taking is None else lambda: taking(parts.load())


def _opening(parts: ApplyParts, catalogue: Any) -> Any:
    return _taking_tables(parts, catalogue, parts.opened(catalogue))


def _taking_tables(parts: ApplyParts, catalogue: Any, target: Any) -> Any:
    """Returns an opened target as the job has it, of which the log has taken its tables."""
    wrapped = parts.wrapped(target)
    if parts.taking is not None:
        wrapped.take_tables(parts.taking(catalogue))
    return wrapped
