"""Gathers a run's figures from the extractor's journal, the log and the target."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from kainite_demo.invariant import Invariant
from kainite_demo.json_lines import JsonLinesFile
from kainite_demo.latency import AppliedTimes
from kainite_demo.log_watch import LogWatch
from kainite_demo.progress import Figures
from kainite_demo.watching import Watching


class RunMonitor:
    """The figures of a run; :meth:`poll` brings them up to date.

    ``committed_us`` holds each captured unit's commit time in the source by name, in the order of commits. ``ends``
    tells whether each unit has one more record, for its end.
    """

    def __init__(self, journal: JsonLinesFile, log: LogWatch, *, ends: bool = True) -> None:
        self.log = log
        self.invariant = Invariant()
        self.applied_times = AppliedTimes()
        self.committed_us: dict[str, int] = {}
        self._changes: dict[str, int] = {}
        self._journal = journal
        self._ends = ends
        self._watching: tuple[Watching, ...] = ()
        self._started = time.monotonic()

    @contextmanager
    def watching(self, target: str) -> Iterator[None]:
        """Looks at the target as often as possible while the ``with`` lasts."""
        with Watching(target, self.invariant.look) as sums, Watching(target, self.applied_times.look) as times:
            self._watching = (sums, times)
            yield

    @property
    def records(self) -> int:
        """Returns the number of records of the captured units, each counted once: changes and ends."""
        return sum(self._changes.values()) + self._ends * len(self._changes)

    @property
    def done(self) -> dict[str, int]:
        """Returns each process's progress, in units."""
        return {"daemon": self.log.counts.collected, "apply job": self.applied, "extractor": len(self.committed_us)}

    @property
    def applied(self) -> int:
        return self.invariant.latest.transactions

    def poll(self, kills: int) -> Figures:
        """Reads all sources of figures once.

        Raises:
            DemoError: a snapshot of the target was torn.
            LogUnavailableError: the log's store did not answer.
        """
        for watching in self._watching:
            watching.check()
        self._read_journal()
        counts = self.log.poll()
        return Figures(
            seconds=time.monotonic() - self._started,
            captured=len(self.committed_us),
            records=counts.records,
            collected=counts.collected,
            dispatched=counts.dispatched,
            applied=self.applied,
            behind=self._behind(),
            snapshots=self.invariant.looks,
            kills=kills,
        )

    def _read_journal(self) -> None:
        for line in self._journal.read():
            for uow, commit_us, changes in line.get("commits", ()):
                self.committed_us[uow] = commit_us
                self._changes[uow] = changes

    def _behind(self) -> float:
        """Returns the age of the oldest unit that is not applied, in seconds."""
        # Units are applied in about the order of their commits, so n applied units are taken for the first n.
        waiting = list(self.committed_us.values())[self.applied :]
        return max(0.0, time.time() - waiting[0] / 1e6) if waiting else 0.0
