"""Owns the log for a while: mounts the partition, and serves it until another process mounts it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from kainite.base.errors import LogFencedError, LogHandedOverError, LogHeldError, LogUnavailableError
from kainite.base.logs import event
from kainite.base.process_identity import ProcessIdentity
from kainite.log.contract import LogStore
from kainite.observe.meter import Meter
from kainite.owner.audit.trail import AuditTrail
from kainite.owner.mount import LeaseWatch, Mount, mount, new_token
from kainite.owner.owner import LogOwner
from kainite.owner.serving import serve_log
from kainite.peers.access import LOG_USER
from kainite.peers.address import OwnerAddress
from kainite.peers.connection.introduction import Key
from kainite.peers.rights import OF_THE_LOG
from kainite.peers.sharing.head_look import ToldOnce
from kainite.peers.sharing.latest_reading import LatestReading
from kainite.peers.sharing.membership import Fenced, HandedOver, NotMounted
from kainite.peers.sharing.present_log import PresentLog
from kainite.settings import LogSettings, UowSettings
from kainite.uow.current_catalogue import CurrentCatalogue

_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Owning:
    """The parts that this process needs to own the log.

    Attributes:
        store: the log's store.
        settings, uow: the settings of the log, and of its units.
        identity: the identity of the stream that is collected; None if it is not known.
        process: this process.
        watch: measures the lease of another owner.
        clock: returns seconds since boot.
        audit: gets the units before they leave the log; None means that nothing keeps them.
        meter: takes the owner's metrics.
        present_log: gets the owner as the present log.
        reading: reports how far this process's shards are read.
        told: logs warnings.
        has_token: whether HEAD is to have a token, by which others are let in (:mod:`kainite.peers.access`).
        address: the address of this process that HEAD will name; None before its port is open.
        catalogue: the target's tables; None where this process does not know them.
        token: of the latest mount, or the present attempt; empty before.
    """

    store: LogStore
    settings: LogSettings
    uow: UowSettings
    identity: str | None
    process: ProcessIdentity
    watch: LeaseWatch
    clock: Callable[[], float]
    audit: AuditTrail | None
    meter: Meter
    present_log: PresentLog
    reading: LatestReading
    told: ToldOnce
    has_token: bool
    address: OwnerAddress | None = None
    catalogue: CurrentCatalogue | None = None
    token: str = field(default="", repr=False)

    def key_of(self, user: str) -> Key | None:
        """Returns the key of who has read HEAD."""
        return Key(self.token, OF_THE_LOG) if user == LOG_USER and self.token else None

    @property
    def owner(self) -> LogOwner | None:
        """Returns the log's owner, if it is here and serves."""
        log = self.present_log.log
        return log if isinstance(log, LogOwner) else None

    async def own(self, gone: int | None, mounted: Callable[[], None]) -> Fenced | HandedOver | NotMounted:
        """Mounts the partition, and serves it until another process mounts it.

        Args:
            gone: a generation for whose owner the mount need not wait.
            mounted: called when the log's state is loaded.
        """
        try:
            mount_ = await self._mounted(gone)
            if mount_ is None:
                return NotMounted()
            serving = serve_log(
                self.store, self.settings, self.uow, mount_, audit=self.audit, clock=self.clock,
                meter=self.meter,
            )  # fmt: skip
            async with serving as owner:
                await self._serve(owner, mounted)
        except LogFencedError as error:
            event(_logger, logging.WARNING, "log is owned elsewhere now", error=error)
            return Fenced()
        except LogHandedOverError as error:
            event(_logger, logging.INFO, "log handed over", cause=error)
            return HandedOver()
        except LogUnavailableError as error:
            event(_logger, logging.WARNING, "log not mounted", error=error)
        return NotMounted()

    async def _mounted(self, gone: int | None) -> Mount | None:
        settings, address = self.settings, self.address.as_text() if self.address else ""
        # Known here before it is in HEAD: who reads HEAD may connect before the mount has come back.
        self.token = new_token() if self.has_token else ""
        claim = partial(
            mount, self.store, settings.partition, settings.owner, settings.lease, self.watch, self.clock,
            self.process, address=address, gone=gone, stripes=settings.stripes, token=self.token,
        )  # fmt: skip
        try:
            return await asyncio.to_thread(claim)
        except (LogHeldError, LogUnavailableError) as error:
            event(_logger, logging.INFO, "log not mounted", error=error)
            return None

    async def _serve(self, owner: LogOwner, mounted: Callable[[], None]) -> None:
        if self.identity is not None:
            await owner.collect_from(self.identity)
        if self.catalogue is not None:
            owner.judge_by(self.catalogue)
        self._report_to(owner)
        self.told.is_over()
        self.present_log.put(owner)
        mounted()
        try:
            with owner.asking(partial(self._report_to, owner, awaited=True)):
                raise await owner.failed()
        finally:
            self.present_log.drop(owner)

    def _report_to(self, owner: LogOwner, *, awaited: bool = False) -> None:
        if (reading := self.reading.now(awaited)) is not None:
            owner.report(reading)
