"""The log as all daemons of an application share it: one of them owns it, the others append through it.

:class:`SharedLog` is the one :class:`~kainite.log.client.LogClient` that the shards of a process use. Behind it stands
the owner in this process, or a connection to the owner in another one, or nobody for a while. The states and their
changes are in :mod:`kainite.peers.sharing.membership`; this module reads HEAD, mounts, connects and listens.

A request that the log behind the facade cannot finish (it was fenced, it stopped, the connection was cut) is made again
when another one stands there. That is safe for any number of times and owners: the table in
:mod:`kainite.peers.sharing.conversation` says why. Nobody's child is restarted for a change of owners, and
reading goes on from where it was.

The port is opened before this process claims anything, and closed after it has released everything: a refused
connection is evidence that the process is gone. While the log is owned elsewhere, the port answers with the owner's
address.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Final, TypeVar

from kainite.base.clock import boot_seconds
from kainite.base.errors import (
    KainiteError,
    LogFencedError,
    LogHeldError,
    LogProtocolError,
    LogUnavailableError,
)
from kainite.base.logs import event
from kainite.base.position import Position
from kainite.base.process_identity import ProcessIdentity, this_process
from kainite.log.client import LogClient, ReadingReport
from kainite.log.collecting.waiting import NEAR_S
from kainite.log.contract import LogHead, LogStore
from kainite.observe import metric
from kainite.observe.meter import SILENT, Meter
from kainite.owner.audit.trail import AuditTrail
from kainite.owner.mount import LeaseWatch, Mount, holder_of, mount, seconds_held
from kainite.owner.owner import LogOwner
from kainite.peers.access import Access
from kainite.peers.feed.session import FeedSession
from kainite.peers.server import Service
from kainite.peers.sharing import address as addresses
from kainite.peers.sharing import log_metrics, network
from kainite.peers.sharing.address import OwnerAddress
from kainite.peers.sharing.connection import OwnerConnection, connected
from kainite.peers.sharing.conversation import Conversation
from kainite.peers.sharing.fragments import check_size, payload_size
from kainite.peers.sharing.membership import (
    Action,
    Claim,
    Connect,
    Cut,
    Event,
    Fenced,
    HeadSeen,
    HeadUnread,
    Leave,
    Look,
    Member,
    MemberState,
    Mounted,
    NotMounted,
    Refused,
    Welcomed,
)
from kainite.peers.sharing.session import Session
from kainite.settings import LogSettings, UowSettings
from kainite.uow.current_catalogue import CurrentCatalogue
from kainite.uow.fragment import Fragment

_logger = logging.getLogger(__name__)

T = TypeVar("T")

LONGEST_WAIT_S: Final = 1.0
"""Most seconds between two looks at HEAD while it is held and its owner is not reached."""


class SharedLog:
    """A member of those who share one log partition; made by :func:`open_shared_log`.

    Args:
        store: where the log is.
        settings, uow: of the log and its units.
        stream: the name of the stream whose units are collected.
        identity: what no other stream ever has, also none of the same name; the log is this stream's alone. None: it is
            not known.
        audit: where units are written before they leave the log; None: nowhere.
        clock: measures leases and ages, seconds since boot.
        process: identity of this process; None: that of the calling one.
        meter: takes the log's metrics.
    """

    def __init__(
        self,
        store: LogStore,
        settings: LogSettings,
        uow: UowSettings,
        stream: str,
        audit: AuditTrail | None = None,
        clock: Callable[[], float] = boot_seconds,
        process: ProcessIdentity | None = None,
        access: Access | None = None,
        identity: str | None = None,
        meter: Meter = SILENT,
    ) -> None:
        self._meter = meter
        self._access = access or Access()
        self._identity = identity
        self.partition = settings.partition
        self.log_name = f"{settings.table}/{settings.partition}"
        """Names the log on connections: another application's log may have a partition of the same name."""
        self.stream = stream
        self.worker = settings.owner
        self.clients: dict[str, str] = {}
        """The worker ids of the clients that have joined here, and the identity of each one's process."""
        self.followers: set[FeedSession] = set()
        """Those who follow the log here."""
        self._sessions: set[Session] = set()
        self.clock = clock
        self._process = process or this_process()
        self._store = store
        self._settings = settings
        self._uow = uow
        self._audit = audit
        self._catalogue: CurrentCatalogue | None = None
        wait = min(settings.lease / 10, LONGEST_WAIT_S)
        self._member = Member(watch=min(settings.heartbeat, settings.lease / 4), wait=wait)
        self._watch = LeaseWatch(clock)
        self._head: LogHead | None = None  # as it was seen last
        self._listener: network.Listener | None = None
        self._address: OwnerAddress | None = None
        self._log: LogClient | None = None  # what stands behind the facade
        self._there = asyncio.Event()
        self._reached_at = clock()  # when the facade got what stands behind it
        self._left_at = clock()  # when the facade had nothing behind it for the first time since it had something
        self._held_elsewhere = False  # whether an owner that lives was seen since then, in the last look at HEAD
        self._report: tuple[ReadingReport, float] | None = None
        self.reading: Callable[[], ReadingReport | None] | None = None
        """Returns how far this process's shards are read now, None where it cannot tell; asked when that is awaited."""
        self._events: asyncio.Queue[tuple[int, Event] | BaseException] = asyncio.Queue()
        self._epoch = 0
        self._under_way: set[asyncio.Task[None]] = set()
        self._told = ""
        self._warned = False

    def __repr__(self) -> str:
        return f"<SharedLog {self.partition} {self._member.state.name}>"

    # What shards, reports and health use.

    async def position(self, shard_id: str) -> Position | None:
        return await self._ask(lambda log: log.position(shard_id))

    async def append(
        self,
        shard_id: str,
        first: Position,
        last: Position,
        fragments: Sequence[Fragment],
        *,
        started_ms: int | None = None,
    ) -> None:
        check_size(shard_id, payload_size(fragments))
        await self._ask(lambda log: log.append(shard_id, first, last, fragments, started_ms=started_ms))

    def report(self, report: ReadingReport) -> None:
        self._report = report, self.clock()
        if self.owner is not None:
            self.owner.report(report)

    async def reached(self) -> None:
        """Waits until there is a log to append to: here, or on a connection."""
        await self._there.wait()

    @property
    def is_reached(self) -> bool:
        """Returns whether there is a log to append to."""
        return self._there.is_set()

    @property
    def is_cut_off(self) -> bool:
        """Returns whether the log's owner lives and was not reached for two leases."""
        waited = self.clock() - self._left_at
        return not self.is_reached and self._held_elsewhere and waited >= 2 * self._settings.lease

    @property
    def owner(self) -> LogOwner | None:
        """Returns the log's owner, if it is here and serves."""
        return self._log if isinstance(self._log, LogOwner) else None

    @property
    def peers(self) -> int:
        """Returns how many members append through this one."""
        return len(self.clients)

    @property
    def unanswered(self) -> int:
        """Returns the bytes of the peers' appends that are not answered yet."""
        return sum(session.unanswered for session in self._sessions)

    @property
    def settled_for(self) -> float:
        """Returns for how many seconds the log has been where it is; 0 while it is not reached."""
        return self.clock() - self._reached_at if self.is_reached else 0.0

    @property
    def is_claiming(self) -> bool:
        """Returns whether this process is about to own the log."""
        return self._member.state is MemberState.CLAIMING

    def elsewhere(self) -> str:
        """Returns the address of the log's owner in another process, as far as it is known; empty when it is not."""
        head = self._head
        return head.address if head is not None and not self._is_mine(head) else ""

    def backlog(self) -> str:
        """Returns why the log takes no more from the shards; empty while it does."""
        if isinstance(self._log, OwnerConnection):
            return self._log.backlog
        return str(self.owner.backlog() or "") if self.owner is not None else ""

    def feed_lags(self) -> tuple[tuple[str, int], ...]:
        """Returns who follows the log here, and how many durable entries each has not folded."""
        return tuple(sorted((feed.name, feed.lag) for feed in self.followers))

    def observe_lags(self) -> None:
        """Tells the meter how far the slowest follower is behind."""
        self._meter.observe(metric.FEED_LAG, max((lag for _, lag in self.feed_lags()), default=0))

    @property
    def catalogue(self) -> CurrentCatalogue | None:
        """Returns the target's tables; None where they are not known here."""
        return self._catalogue

    def held_by(self) -> str:
        """Returns what holds the watermark back while units wait for it; empty elsewhere than at the owner."""
        return str(self.owner.held_by() or "") if self.owner is not None else ""

    def judge_by(self, catalogue: CurrentCatalogue) -> None:
        """Judges units that did not fit the catalogue anew (:meth:`LogOwner.judge_by`) whenever the owner is here."""
        self._catalogue = catalogue
        if self.owner is not None:
            self.owner.judge_by(catalogue)

    async def _ask(self, request: Callable[[LogClient], Awaitable[T]]) -> T:
        while True:
            await self._there.wait()
            if (log := self._log) is None:
                continue  # it was there, and is gone before this task had its turn
            try:
                return await request(log)
            except (LogFencedError, LogUnavailableError):
                self._drop(log)

    def _put(self, log: LogClient) -> None:
        self._log = log
        self._reached_at = self.clock()
        self._there.set()

    def _drop(self, log: LogClient) -> None:
        if self._log is log:
            self._log = None
            self._there.clear()
            self._left_at, self._held_elsewhere = self.clock(), False

    # What membership asks for.

    async def run(self) -> None:
        """Carries out what the membership decides, until cancelled; then releases what this process owns.

        Raises:
            LogError: the log cannot be used.
        """
        sampling = asyncio.create_task(log_metrics.sample_on(self._meter, self))
        try:
            self._do(self._member.begin())
            while True:
                happened = await self._events.get()
                if isinstance(happened, BaseException):
                    raise happened
                epoch, event_ = happened
                if epoch == self._epoch:
                    actions = self._member.on(event_)
                    if Leave() in actions:
                        await self._leave()
                    self._do(actions)
        finally:
            sampling.cancel()
            self._member.stop()
            await self._leave()
            log_metrics.sample(self._meter, self)

    def _do(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case Look(after):
                    self._start(self._look(after))
                case Claim(gone):
                    self._start(self._own(gone))
                case Connect(to, generation):
                    self._start(self._follow(to, generation))

    def _start(self, activity: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(activity)
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._events.put_nowait(error)

    def _tell(self, happened: Event, epoch: int) -> None:
        self._events.put_nowait((epoch, happened))

    async def _leave(self) -> None:
        """Ends what is under way; returns when it has ended. What it still tells is not heard."""
        self._epoch += 1
        tasks = tuple(self._under_way)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _look(self, after: float) -> None:
        epoch = self._epoch
        await asyncio.sleep(after)
        try:
            head = await asyncio.to_thread(self._store.read_head, self.partition)
        except LogUnavailableError as error:
            self._held_elsewhere = False
            self._say_once("log not looked at", error=error)
            self._tell(HeadUnread(), epoch)
            return
        self._tell(self._seen(head), epoch)

    def _seen(self, head: LogHead | None) -> HeadSeen:
        self._head = head
        if head is None:
            return HeadSeen(0, free=True)
        left = seconds_held(head, self.worker, self._watch, self._process)
        self._held_elsewhere = left > 0
        address = addresses.from_text(head.address)
        reachable = address if address is not None and address.is_reachable and not self._is_mine(head) else None
        if left > 0 and reachable is None:
            self._say_once("waiting for the log", cause=_why_waiting(head, self.worker), lease_left=round(left, 1))
        if not self._warned and self._watch.has_living_namesake(self.worker) and not self._is_mine(head):
            self._warned = True
            event(_logger, logging.ERROR, "another daemon runs under this worker id: give each its own workerId",
                  worker=self.worker, holder=holder_of(head))  # fmt: skip
        return HeadSeen(head.generation, left <= 0, reachable)

    def _is_mine(self, head: LogHead) -> bool:
        return head.process == self._process.as_text()

    async def _own(self, gone: int | None) -> None:
        """Mounts the partition, and serves it until another process mounts it."""
        epoch = self._epoch
        mounted = await self._mounted(gone)
        if mounted is None:
            self._tell(NotMounted(), epoch)
            return
        served = False
        try:
            serving = LogOwner.serve(
                self._store, self._settings, self._uow, mounted, audit=self._audit, clock=self.clock,
                meter=self._meter,
            )  # fmt: skip
            async with serving as owner:
                served = True
                await self._serve(owner, epoch)
        except LogFencedError as error:
            event(_logger, logging.WARNING, "log is owned elsewhere now", error=error)
            self._tell(Fenced() if served else NotMounted(), epoch)
        except LogUnavailableError as error:
            event(_logger, logging.WARNING, "log not mounted", error=error)
            self._tell(NotMounted(), epoch)

    async def _mounted(self, gone: int | None) -> Mount | None:
        claim = partial(
            mount, self._store, self.partition, self.worker, self._settings.lease, self._watch, self.clock,
            self._process, address=self.address, gone=gone, stripes=self._settings.stripes,
        )  # fmt: skip
        try:
            return await asyncio.to_thread(claim)
        except (LogHeldError, LogFencedError, LogUnavailableError) as error:
            event(_logger, logging.INFO, "log not mounted", error=error)
            return None

    async def _serve(self, owner: LogOwner, epoch: int) -> None:
        if self._identity is not None:
            await owner.collect_from(self._identity)
        if self._catalogue is not None:
            owner.judge_by(self._catalogue)
        self._report_to(owner)
        self._told = ""
        self._put(owner)
        self._tell(Mounted(), epoch)
        try:
            with owner.asking(partial(self._report_to, owner)):
                raise await owner.failed()
        finally:
            self._drop(owner)

    def _report_to(self, owner: LogOwner) -> None:
        if (reading := self._reading()) is not None:
            owner.report(reading)

    async def _follow(self, to: OwnerAddress, generation: int) -> None:
        """Connects to an owner, and appends through it until the connection ends."""
        epoch = self._epoch
        me = self._process.as_text()
        introduction = self._access.introduce(self.worker).as_message()
        conversation = Conversation(
            self.log_name, self.stream, self.worker, me, generation, introduction, self._identity or ""
        )
        try:
            async with connected(to, conversation, self._reading, self._access.client_tls) as connection:
                await self._append_through(connection, to, epoch)
        except ConnectionRefusedError:
            self._tell(Refused(), epoch)
        except LogProtocolError as error:
            self._say_once("log's owner not understood", address=to, error=error)
            self._tell(Cut(), epoch)
        except (OSError, LogUnavailableError) as error:
            event(_logger, logging.INFO, "log's owner left", address=to, error=error)
            self._tell(Cut(), epoch)

    async def _append_through(self, connection: OwnerConnection, to: OwnerAddress, epoch: int) -> None:
        conversing = asyncio.create_task(connection.converse())
        opening = asyncio.create_task(connection.opened())
        try:
            await asyncio.wait({conversing, opening}, return_when=asyncio.FIRST_COMPLETED)
            if opening.done():
                self._told = ""
                event(_logger, logging.INFO, "log reached", address=to, generation=self._member.generation)
                self._put(connection)
                self._tell(Welcomed(), epoch)
            await conversing
        finally:
            self._drop(connection)
            for task in (conversing, opening):
                task.cancel()
            await asyncio.gather(conversing, opening, return_exceptions=True)

    def _reading(self) -> ReadingReport | None:
        """Returns the latest report with ages as of now; None where it is too old: its shards may be others by now."""
        if self.reading is not None and (now := self.reading()) is not None:
            self._report = now, self.clock()
        if self._report is None:
            return None
        report, at = self._report
        since = self.clock() - at
        if since > NEAR_S:
            return None
        return report.aged(since)

    def _say_once(self, name: str, **fields: object) -> None:
        """Logs a warning about a lasting condition once."""
        if self._told != name:
            self._told = name
            event(_logger, logging.WARNING, name, **fields)

    # Connections of others.

    @property
    def address(self) -> str:
        """Returns where other processes reach this one, as HEAD has it; empty before its port is open."""
        return self._address.as_text() if self._address else ""

    async def open_port(self, applications: Service | None = None) -> None:
        """Opens the port of this process.

        Args:
            applications: answers applications there; None: they are not served.

        Raises:
            SettingsError: the port cannot be opened.
        """
        self._listener, self._address = await network.listen(self._serve_client, self._access, applications)

    async def close_port(self) -> None:
        """Closes the port, and all connections to it."""
        if self._listener is not None:
            await self._listener.close()

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = Session(self, reader, writer)
        self._sessions.add(session)
        try:
            await session.run()
        finally:
            self._sessions.discard(session)


def _why_waiting(head: LogHead, worker: str) -> str:
    holder = holder_of(head, worker)
    address = addresses.from_text(head.address)
    if address is None:
        return f"{holder} owns it and takes no connections (an earlier release, or another program)"
    if not address.is_reachable:
        return f"{holder} owns it and listens on {address} of its own host alone: set logListen there"
    return f"{holder} owns it"


@contextlib.asynccontextmanager
async def open_shared_log(
    store: LogStore,
    settings: LogSettings,
    uow: UowSettings,
    stream: str,
    *,
    audit: AuditTrail | None = None,
    clock: Callable[[], float] = boot_seconds,
    process: ProcessIdentity | None = None,
    access: Access | None = None,
    applications: Service | None = None,
    identity: str | None = None,
    meter: Meter = SILENT,
) -> AsyncIterator[tuple[SharedLog, asyncio.Task[None]]]:
    """Creates the store and takes part in sharing the log.

    Args:
        access: where this process listens, and who may connect; None: on loopback, everybody.
        applications: answers applications on the same port; None: they are not served.
        identity: of the stream, as :class:`SharedLog` takes it.
        meter: takes the owner's metrics.

    Yields the log, which need not be reached yet, and the task that ends with what makes the log unusable.

    Raises:
        KainiteError: the store cannot be used, or the port cannot be opened.
    """
    await asyncio.to_thread(store.create)
    log = SharedLog(store, settings, uow, stream, audit, clock, process, access, identity, meter)
    await log.open_port(applications)
    running = asyncio.create_task(log.run(), name="shared log")
    try:
        yield log, running
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError, KainiteError):
            await running
        await log.close_port()
