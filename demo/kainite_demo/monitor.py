"""Gathering a run's figures: from the extractor's journal, the log, and the target."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from kainite_demo.invariant import Invariant
from kainite_demo.json_lines import JsonLines
from kainite_demo.latency import AppliedTimes
from kainite_demo.log_watch import LogWatch
from kainite_demo.progress import Figures
from kainite_demo.watching import Watching


class Monitor:
    """Everything that is known of the run; :meth:`poll` brings it up to date.

    ``committed_us`` is when each captured unit committed in the source, by name and in that order.
    """

    def __init__(self, journal: JsonLines, log: LogWatch) -> None:
        self.log = log
        self.invariant = Invariant()
        self.applied_times = AppliedTimes()
        self.committed_us: dict[str, int] = {}
        self._changes: dict[str, int] = {}
        self._journal = journal
        self._watching: tuple[Watching, ...] = ()
        self._started = time.monotonic()

    @contextmanager
    def watching(self, target: str) -> Iterator[None]:
        """Inside, the target is looked at as often as possible."""
        with Watching(target, self.invariant.look) as sums, Watching(target, self.applied_times.look) as times:
            self._watching = (sums, times)
            yield

    @property
    def records(self) -> int:
        """Records that were put for what is captured, each counted once: a change's, and each unit's end."""
        return sum(self._changes.values()) + len(self._changes)

    @property
    def done(self) -> dict[str, int]:
        """How far each process has got, in units."""
        return {"daemon": self.log.counts.collected, "apply job": self.applied, "extractor": len(self.committed_us)}

    @property
    def applied(self) -> int:
        return self.invariant.latest.transactions

    def poll(self, kills: int) -> Figures:
        """Look everywhere once.

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
        """Units are applied in about the order in which they committed; the n-th is taken for the oldest."""
        waiting = list(self.committed_us.values())[self.applied :]
        return max(0.0, time.time() - waiting[0] / 1e6) if waiting else 0.0
