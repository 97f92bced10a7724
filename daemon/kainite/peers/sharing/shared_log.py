"""The log as all daemons of an application share it: one of them owns it, the others append through it.

:class:`SharedLog` is the one :class:`~kainite.log.client.LogClient` that the shards of a process use. Behind it
(:mod:`~kainite.peers.sharing.present_log`) stands the owner in this process, or a connection to the owner in another
one, or nobody for a while. The states and their changes are in :mod:`~kainite.peers.sharing.membership`, and
:mod:`~kainite.peers.sharing.member_loop` carries them out. A change of owners restarts no child, and reading goes on
from the same position.

The port is opened before this process claims anything, and closed after it has released everything: a refused
connection is evidence that the process is gone. While the log is owned elsewhere, the port answers with the owner's
address (:mod:`~kainite.peers.sharing.reception`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from kainite.base.clock import boot_seconds
from kainite.base.errors import KainiteError
from kainite.base.outage import wait_out
from kainite.base.position import Position
from kainite.base.process_identity import ProcessIdentity, this_process
from kainite.log.client import ReadingReport
from kainite.log.contract import LogStore
from kainite.observe.meter import SILENT, Meter
from kainite.owner.audit.trail import AuditTrail
from kainite.owner.mount import LeaseWatch
from kainite.owner.owner import LogOwner
from kainite.peers.access import Access
from kainite.peers.fragments import check_size, payload_size
from kainite.peers.held_files import following_files
from kainite.peers.listening import listening
from kainite.peers.messages import CLIENT_LIMITS
from kainite.peers.sharing import log_metrics
from kainite.peers.sharing.appending import Appending
from kainite.peers.sharing.connection import OwnerConnection
from kainite.peers.sharing.conversation import MemberName
from kainite.peers.sharing.head_look import HeadLook, ToldOnce
from kainite.peers.sharing.latest_reading import LatestReading
from kainite.peers.sharing.lease_holders import HolderCheck
from kainite.peers.sharing.member_loop import MemberLoop
from kainite.peers.sharing.membership import Member, MemberState
from kainite.peers.sharing.owning import Owning
from kainite.peers.sharing.present_log import PresentLog
from kainite.peers.sharing.reception import Reception
from kainite.peers.sharing.refused_appends import RefusedAppends
from kainite.settings import LogSettings, UowSettings
from kainite.uow.current_catalogue import CurrentCatalogue
from kainite.uow.fragment import Fragment

LONGEST_WAIT_S: Final = 1.0
"""The most seconds between two looks at HEAD while another process holds the log and is not reached."""


class SharedLog:
    """One of the processes that share a log partition; made by :func:`open_shared_log`.

    Args:
        store: the log's store.
        settings, uow: the settings of the log, and of its units.
        stream: the name of the stream whose units are collected.
        holders: tells who holds the leases of the stream's shards, while this process owns the log.
        identity: the stream's identity, which no other stream ever has, not even one of the same name; None if it is
            not known.
        audit: gets the units before they leave the log; None means that nothing keeps them.
        process: the identity of this process; None means that of the calling process.
        access: where this process listens, who may connect, and as whom it connects; None means on loopback, and who
            has read HEAD.
        meter: takes the log's metrics.
    """

    def __init__(
        self,
        store: LogStore,
        settings: LogSettings,
        uow: UowSettings,
        stream: str,
        holders: HolderCheck,
        audit: AuditTrail | None = None,
        process: ProcessIdentity | None = None,
        access: Access | None = None,
        identity: str | None = None,
        meter: Meter = SILENT,
    ) -> None:
        process, worker, partition = process or this_process(), settings.owner, settings.partition
        self.name = MemberName(f"{settings.table}/{partition}", stream, worker, process.as_text(), identity or "")
        """This process's identity, and the log that it means."""
        self.access = access or Access()
        """Where this process listens, who may connect, and as whom it connects."""
        self.present_log = PresentLog(boot_seconds, settings.lease)
        """The log to which the shards' requests go."""
        self.latest_reading = LatestReading(boot_seconds)
        """Reports how far this process's shards are read."""
        self.reception = Reception(self.name, self, boot_seconds, meter, holders)
        """The members, followers and others that are connected to this process."""
        told, watch = ToldOnce(), LeaseWatch(boot_seconds)
        self._head = HeadLook(store, partition, worker, process, watch, self.present_log, told, settings.targets.digest)
        self._owning = Owning(
            store,
            settings,
            uow,
            identity,
            process,
            watch,
            boot_seconds,
            audit,
            meter,
            self.present_log,
            self.latest_reading,
            told,
            self.access.has_tokens,
        )
        self._loop = MemberLoop(
            Member(watch=min(settings.heartbeat, settings.lease / 4), wait=min(settings.lease / 10, LONGEST_WAIT_S)),
            self._head,
            self._owning,
            Appending(self.name, self.access, self.present_log, self.latest_reading, told),
        )
        self._meter = meter
        self._refused = RefusedAppends()

    def __repr__(self) -> str:
        return f"<SharedLog {self.name.log} {self._loop.state.name}>"

    # What shards use.

    @property
    def hold_ms(self) -> int | None:
        log = self.present_log.log
        return None if log is None else log.hold_ms

    async def position(self, shard_id: str) -> Position | None:
        return await self.present_log.ask(lambda log: log.position(shard_id))

    async def begin(self, at_ms: int, stream: str = "") -> int:
        return await self.present_log.ask(lambda log: log.begin(at_ms, stream))

    async def append(
        self,
        shard_id: str,
        first: Position,
        last: Position,
        fragments: Sequence[Fragment],
        after: Position | None = None,
    ) -> None:
        check_size(shard_id, payload_size(fragments))

        async def put(fragments: Sequence[Fragment]) -> None:
            await self.present_log.ask(lambda log: log.append(shard_id, first, last, fragments, after))

        await self._refused.append(put, shard_id, first, last, fragments)

    def report(self, report: ReadingReport) -> None:
        self.latest_reading.note(report)
        if self.owner is not None:
            self.owner.report(report)

    async def reached(self) -> None:
        """Waits until there is a log to append to: here, or on a connection."""
        await self.present_log.reached()

    # What reports, health and peers use.

    @property
    def is_reached(self) -> bool:
        """Returns whether there is a log to append to."""
        return self.present_log.is_reached

    @property
    def is_cut_off(self) -> bool:
        """Returns whether the log's owner lives and was not reached for two leases."""
        return self.present_log.is_cut_off

    @property
    def settled_for(self) -> float:
        """Returns for how many seconds the log has been at its present owner; 0 while no owner is reached."""
        return self.present_log.settled_for

    @property
    def owner(self) -> LogOwner | None:
        """Returns the log's owner, if it is here and serves."""
        return self._owning.owner

    @property
    def peers(self) -> int:
        """Returns how many members append through this one."""
        return len(self.reception.members)

    @property
    def unanswered(self) -> int:
        """Returns the bytes of the peers' appends that are not answered yet."""
        return self.reception.unanswered

    @property
    def is_claiming(self) -> bool:
        """Returns whether this process is about to own the log."""
        return self._loop.state is MemberState.CLAIMING

    @property
    def reading(self) -> Callable[[], ReadingReport | None] | None:
        """Returns the function that reports how far this process's shards are read, if one is set."""
        return self.latest_reading.source

    @reading.setter
    def reading(self, source: Callable[[], ReadingReport | None] | None) -> None:
        self.latest_reading.source = source

    def elsewhere(self) -> str:
        """Returns the address of the log's owner in another process; empty when the address is not known."""
        return self._head.elsewhere()

    def other_targets(self) -> str:
        """Returns the worker id of an owner in another process whose settings have other targets; empty for none."""
        return "" if self.owner is not None else self._head.other_targets()

    def backlog(self) -> str:
        """Returns why the log takes no more records from the shards; empty while it takes them."""
        if isinstance(self.present_log.log, OwnerConnection):
            return self.present_log.log.backlog
        return str(self.owner.backlog() or "") if self.owner is not None else ""

    def feed_lags(self) -> tuple[tuple[str, int], ...]:
        """Returns who follows the log here, and how many durable entries each has not folded."""
        return self.reception.feed_lags()

    def held_by(self) -> str:
        """Returns what holds the watermark back while units wait for it; empty in a process that is not the owner."""
        return str(self.owner.held_by() or "") if self.owner is not None else ""

    @property
    def catalogue(self) -> CurrentCatalogue | None:
        """Returns the target's tables; None where this process does not know them."""
        return self._owning.catalogue

    def judge_by(self, catalogue: CurrentCatalogue) -> None:
        """Judges units that did not fit the catalogue again (:meth:`LogOwner.judge_by`) whenever the owner is here."""
        self._owning.catalogue = catalogue
        if self.owner is not None:
            self.owner.judge_by(catalogue)

    @property
    def address(self) -> str:
        """Returns the address of this process, as HEAD names it; empty before its port is open."""
        address = self._owning.address
        return address.as_text() if address else ""

    @contextlib.asynccontextmanager
    async def port_open(self, access: Access) -> AsyncIterator[None]:
        """Opens the port of this process until the end.

        Raises:
            SettingsError: the port cannot be opened.
        """
        async with listening(
            self.reception, access, self._owning.key_of, CLIENT_LIMITS, meter=self._meter
        ) as self._owning.address:
            yield

    async def run(self) -> None:
        """Takes part in sharing the log until cancelled; then releases the log if this process owns it.

        Raises:
            LogError: the log cannot be used.
        """
        sampling = asyncio.create_task(log_metrics.sample_on(self._meter, self))
        try:
            await self._loop.run()
        finally:
            sampling.cancel()
            log_metrics.sample(self._meter, self)


@contextlib.asynccontextmanager
async def open_shared_log(
    store: LogStore,
    settings: LogSettings,
    uow: UowSettings,
    stream: str,
    *,
    holders: HolderCheck,
    audit: AuditTrail | None = None,
    process: ProcessIdentity | None = None,
    access: Access | None = None,
    identity: str | None = None,
    meter: Meter = SILENT,
    stop: asyncio.Event | None = None,
) -> AsyncIterator[tuple[SharedLog, asyncio.Task[None]]]:
    """Creates the store and takes part in sharing the log.

    Args:
        holders: tells who holds the leases of the stream's shards, while this process owns the log.
        access: where this process listens, and who may connect; None means on loopback, and who has read HEAD.
        identity: the stream's identity, as :class:`SharedLog` takes it.
        meter: takes the owner's metrics.
        stop: ends the wait for a store that is away; None where nothing does.

    Yields the log, which need not be reached yet, and the task that ends with the error that makes the log unusable.

    Raises:
        StoppedError: ``stop`` was set while the store was away.
        KainiteError: the store cannot be used, or the port cannot be opened.
    """
    await wait_out(store.create, stop or asyncio.Event(), "the log's table")
    access = access or Access()
    log = SharedLog(store, settings, uow, stream, holders, audit, process, access, identity, meter)
    async with log.port_open(access), following_files(access.held, meter):
        running = asyncio.create_task(log.run(), name="shared log")
        try:
            yield log, running
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError, KainiteError):
                await running
