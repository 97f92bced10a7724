"""Gathers the facts, in bounded time: one read of HEAD, a scan of the lease table, the fleet's table, health pages.

The log itself is not read, so the time does not depend on its length. A heartbeat or a lease's counter is awaited only
where nothing else shows that its writer lives: the summary in HEAD is no older than the owner's lease by this host's
clock, or the daemon's ``/health`` answers. A wrong clock so costs the wait, and a log whose owner has just died counts
as owned for the lease, as it does for everybody else.

Everything that cannot be read becomes a fact with its error: the verdict says so. Nothing here raises, but for settings
of which no client can be made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from kainite.aws.clients import client
from kainite.base.clock import epoch_ms
from kainite.base.errors import KainiteError
from kainite.base.liveness import Sighting, observe
from kainite.base.process_identity import from_text as process_from_text
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.leases.administration.report import make_rows, observe_counters
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.contract import LogHead
from kainite.log.state.summary import LogSummary, from_text
from kainite.observe.check import Level
from kainite.settings import AwsSettings, Settings
from kainite.settings.sections.log import heartbeat_of
from kainite.settings.several import plain_streams
from kainite.store.dynamodb import DynamoDBStore
from kainite.verdict.facts import DaemonFacts, Facts, FleetFacts, LeaseFacts, LogFacts, ReplicaFacts
from kainite.verdict.health_page import ask_health
from kainite.verdict.parts import source_of
from kainite.verdict.shards import shard_views

CALL_S: Final = 2.0
"""Seconds to connect to AWS, and for an answer; there is one try. A person waits for the verdict."""

LOOK_EVERY_S: Final = 0.2
"""Seconds between two looks at something that is to move."""

SLACK_S: Final = 0.5
"""Seconds that an observation goes on beyond the time after which its object has expired."""


class FactsReader:
    """Reads the facts of one application, once or again and again.

    Args:
        settings: the application's.
        file: the settings file, for remedies.
        wait: seconds to wait for heartbeats and counters to move, where nothing else shows life; None: as long as it
            takes to tell.
        asked: further processes whose ``/health`` is asked, as host and port.
        replica: asks the target of a replica; None where there is none.
        clock: seconds that never run backwards.
        sleep: waits for so many seconds.

    Raises:
        SettingsError: no client of AWS can be made.
    """

    def __init__(
        self,
        settings: Settings,
        file: str,
        wait: float | None = None,
        asked: Sequence[tuple[str, int]] = (),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        replica: Callable[[], ReplicaFacts] | None = None,
    ) -> None:
        self._settings = settings
        self._file = file
        self._wait = wait
        self._asked = (*own_pages(settings), *asked)
        self._clock = clock
        self._sleep = sleep
        self._replica = replica
        dynamodb = client("dynamodb", hurried(settings.aws))
        self._log = DynamoDBStore(dynamodb, settings.log.table, token=False)
        self._leases = LeaseTable(dynamodb, settings.leases.table)
        self._fleet = DynamoDBFleetStore(dynamodb, settings.fleet.table, settings.fleet.history_days)
        self._head: Sighting[str] | None = None
        self._counters: dict[str, Sighting[int]] = {}

    def read(self) -> Facts:
        """Returns the facts as they are now."""
        settings = self._settings
        with ThreadPoolExecutor(max_workers=4 + len(self._asked)) as threads:
            log = threads.submit(self._read_log) if settings.log.enabled else None
            leases = threads.submit(self._read_leases) if settings.stream.name else None
            fleet = threads.submit(self._read_fleet) if settings.fleet.enabled else None
            replica = threads.submit(self._replica) if self._replica else None
            pages = [threads.submit(ask_health, host, port) for host, port in self._asked]
            daemons: tuple[DaemonFacts, ...] = tuple([page.result() for page in pages])
            now_ms = epoch_ms()
            facts = Facts(
                settings.leases.application,
                self._file,
                now_ms,
                log=log.result() if log else None,
                leases=leases.result() if leases else None,
                fleet=fleet.result() if fleet else None,
                daemons=daemons,
                source=source_of(daemons, now_ms),
                replica=replica.result() if replica else None,
                unit_timeout=settings.uow.timeout,
                streams=settings.stream.names,
                plain=plain_streams(settings),
                assigned=settings.log.targets.digest,
                collects_into=settings.log.collected,
            )
        return self._observed(facts)

    def _observed(self, facts: Facts) -> Facts:
        """Looks at the leases again while it is not known of a shard whether it is read, and there is time."""
        limit = self._settings.leases.failover + SLACK_S if self._wait is None else self._wait
        end = self._clock() + limit
        while self._clock() < end and any(view.level is Level.UNKNOWN for view in shard_views(facts)):
            self._sleep(LOOK_EVERY_S)
            facts = replace(facts, leases=self._read_leases(), now_ms=epoch_ms())
        return facts

    def _read_leases(self) -> LeaseFacts:
        try:
            scan = self._leases.scan()
        except KainiteError as error:
            return LeaseFacts(error=str(error))
        now = self._clock()
        self._counters = observe_counters(self._counters, scan, now)
        return LeaseFacts(make_rows(scan, self._counters, {}, now, self._settings.leases.failover))

    def _read_fleet(self) -> FleetFacts:
        try:
            return FleetFacts(self._fleet.read())
        except KainiteError as error:
            return FleetFacts(error=str(error))

    def _read_log(self) -> LogFacts:
        partition = self._settings.log.partition
        try:
            head = self._looked()
            if head is None:
                return LogFacts(partition)
            lives, waited = self._lives(head)
            head = self._log.read_head(partition) or head if waited else head
        except KainiteError as error:
            return LogFacts(partition, error=str(error))
        process = process_from_text(head.process)
        shown = str(process) if process else ""
        return LogFacts(partition, head.owner, shown, head.released, lives, waited, from_text(head.summary))

    def _looked(self) -> LogHead | None:
        head = self._log.read_head(self._settings.log.partition)
        if head is not None:
            self._head = observe(self._head, head.version, self._clock())
        return head

    def _lives(self, head: LogHead) -> tuple[bool | None, float]:
        """Returns whether the owner lives, None where that is not known, and for how long a heartbeat was awaited."""
        lease = head.lease_ms / 1000
        if head.released:
            return None, 0.0
        if _is_young(from_text(head.summary), lease):
            return True, 0.0
        silence = 2 * heartbeat_of(lease)
        began = self._clock()
        end = began + (silence + SLACK_S if self._wait is None else self._wait)
        while not (self._head and self._head.moved) and self._clock() < end:
            self._sleep(LOOK_EVERY_S)
            self._looked()
        now, seen = self._clock(), self._head
        if seen is not None and seen.moved and not seen.expired(now, lease):
            return True, now - began
        return (False if seen is not None and seen.expired(now, silence) else None), now - began


def _is_young(summary: LogSummary | None, lease: float) -> bool:
    return summary is not None and abs(epoch_ms() - summary.at_ms) <= lease * 1000


def own_pages(settings: Settings) -> tuple[tuple[str, int], ...]:
    """Returns where the processes of this file serve their health on this host."""
    own = (settings.metrics.port, settings.service.metrics_port)
    ports = (*own, settings.apply.metrics_port, settings.extract.metrics_port)
    return tuple((settings.metrics.host, port) for port in ports if port)


def hurried(aws: AwsSettings) -> AwsSettings:
    """Returns settings for a client for whose answer a person waits: short times, one try."""
    return replace(aws, connect_timeout=CALL_S, read_timeout=CALL_S, tries=1)
