"""One application as the console sees it: its facts, its units, its figures; read while somebody looks.

Each reading is for all who look: a page that asks again within :data:`FACTS_S` or :data:`UNITS_S` gets what was read
last. Whoever comes while another one reads waits for that reading. Nothing is read when nobody asks.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kainite.aws.clients import client
from kainite.base.clock import epoch_ms
from kainite.base.errors import KainiteError
from kainite.console.figures import FigureRing
from kainite.console.observed_target import observed_targets
from kainite.console.rarely import Rarely
from kainite.log.views.followed_units import FollowedUnits
from kainite.operations.carrying_out import Operations
from kainite.operations.inbox import waiting_requests
from kainite.replicate.asked_target import asking
from kainite.settings import Settings
from kainite.store.dynamodb import DynamoDBStore
from kainite.verdict.judging import ApplicationVerdict, judge
from kainite.verdict.reading import FactsReader, hurried

FACTS_S: Final = 1.5
UNITS_S: Final = 1.0
REPLICA_S: Final = 15.0
"""Seconds between two questions to a replica's target: its tables, its latest comparison."""

READ_S: Final = 5.0
"""Seconds for an answer with a part of the log, which takes longer than one item."""

REQUESTS_S: Final = 5.0
"""Seconds between two looks at the requests that wait for the log's owner."""


@dataclass(frozen=True, slots=True)
class LogReading:
    """How far the log is read.

    Attributes:
        complete: whether up to its tail.
        entries: how many entries were read.
        error: why the last reading failed; empty where it did not.
    """

    complete: bool = False
    entries: int = 0
    error: str = ""


class ObservedApplication:
    """An application.

    Args:
        settings: its settings.
        file: its settings file.

    Raises:
        SettingsError: no client of AWS can be made.
    """

    def __init__(self, settings: Settings, file: Path) -> None:
        self.settings = settings
        self.file = file
        self.name = settings.leases.application
        self.store = DynamoDBStore(
            client("dynamodb", replace(hurried(settings.aws), read_timeout=READ_S)), settings.log.table, token=False
        )
        self.units = FollowedUnits(self.store, settings.log.partition, targets=settings.log.targets.names)
        self.figures = FigureRing()
        self.targets = observed_targets(settings)
        self.lock = threading.RLock()
        """Held by whoever looks at the units, which a reading changes."""
        self.operations = Operations(settings)
        self.requests = Rarely(lambda: waiting_requests(self.store, settings.log.partition), REQUESTS_S)
        ask = asking(settings)
        self._facts = FactsReader(settings, str(file), wait=0.0, replica=Rarely(ask, REPLICA_S) if ask else None)
        self._facts_lock = threading.Lock()
        self._verdict: ApplicationVerdict | None = None
        self._judged = 0.0
        self._reading = LogReading()
        self._read = -UNITS_S

    @property
    def has_log(self) -> bool:
        return self.settings.log.enabled

    @property
    def has_several_targets(self) -> bool:
        return bool(self.settings.of_targets)

    @property
    def has_parts(self) -> bool:
        """Returns whether a unit has a status in each of several targets; unless one apply job serves them all."""
        return bool(self.settings.log.targets)

    @property
    def target_kind(self) -> str:
        """Returns what the target is, or the targets are, for people."""
        if self.has_several_targets:
            return ", ".join(target.name for target in self.targets)
        return self.targets[0].kind

    def verdict(self) -> ApplicationVerdict:
        """Returns the verdict on the application, at most some seconds old."""
        with self._facts_lock:
            if self._verdict is None or time.monotonic() - self._judged >= FACTS_S:
                self._verdict = judge(self._facts.read())
                self._judged = time.monotonic()
                log = self._verdict.facts.log
                if log is not None and log.summary is not None and log.alive:
                    with self.lock:
                        self.figures.note_summary(log.summary)
            return self._verdict

    def read_anew(self) -> None:
        """Has the next page read all anew: somebody has just changed it."""
        with self._facts_lock:
            self._verdict = None
        with self.lock:
            self._read = -UNITS_S

    def read_units(self) -> LogReading:
        """Brings the units up to date, unless that was just done; never raises."""
        if not self.has_log:
            return LogReading(True)
        with self.lock:
            if not self._reading.complete or time.monotonic() - self._read >= UNITS_S:
                self._reading = self._refreshed()
                self._read = time.monotonic()
            return self._reading

    def _refreshed(self) -> LogReading:
        try:
            found = self.units.refresh()
        except KainiteError as error:
            return LogReading(self._reading.complete, self.units.next_id, str(error))
        if found.anew:
            self.figures.forget_applied()
        self.figures.note_applied(found.applied, epoch_ms())
        for target in self.targets:
            target.batches.note(found.outcomes.get(target.name if self.has_parts else "", ()))
        return LogReading(found.complete, self.units.next_id)
