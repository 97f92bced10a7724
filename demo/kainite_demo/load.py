"""Puts the load on: runs pgbench, kills processes, and waits until the target has every transaction."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

from kainite.base.errors import DemoError
from kainite.base.liveness import Sighting, observe
from kainite_demo.killer import Killer
from kainite_demo.monitor import RunMonitor
from kainite_demo.processes import Process
from kainite_demo.progress import Display, Figures
from kainite_demo.reading import count_of
from kainite_demo.run_layout import DAEMON, PGBENCH, RunOptions, SourceKind, daemon_names, ready_events, victims
from kainite_demo.settings_file import GRACE_MILLIS
from kainite_demo.sustained import LoadStanding

_TICK = 0.25
# Longer than any part's recovery from a kill.
_STALL_LIMIT = 120.0
# Kills of each process that fit into a run, one after the other, about.
_KILLS_A_RUN = 6
# A host that a fleet has lost comes back when its duties are elsewhere, about: after twice the ping time-out.
_HOST_AWAY = 8.0


class Load:
    """One run of pgbench.

    ``kills`` counts the kills by process. ``standing`` tells, after :meth:`carry`, how far the parts were as pgbench
    ended.

    Args:
        options: the options of the run.
        processes: all processes but pgbench; they run.
        monitor: the monitor, which watches the target.
        display: shows the monitor's figures.
    """

    def __init__(
        self, options: RunOptions, processes: Mapping[str, Process], monitor: RunMonitor, display: Display
    ) -> None:
        self.kills: Counter[str] = Counter()
        self.standing: LoadStanding | None = None
        self._rate = options.rate
        self._grace = GRACE_MILLIS / 1000 if options.source is SourceKind.DSQL else 0.0
        self._processes = processes
        self._monitor = monitor
        self._display = display
        self._parts = tuple(ready_events(options))
        self._daemons = daemon_names(options)
        self._away = _HOST_AWAY if options.fleet else 0.0
        self._back_at: dict[str, float] = {}
        self._killer = Killer(victims(options), options.seconds / _KILLS_A_RUN, options.seed)
        self._started = time.monotonic()

    def carry(self, source: str) -> float:
        """Runs pgbench to its end, and waits until all of its transactions are in the target.

        Returns:
            The seconds from pgbench's start to the last application.

        Raises:
            DemoError: a process broke, a unit failed, a transaction was torn, or all progress ended before all
                transactions were there.
        """
        pgbench = self._processes[PGBENCH]
        self._started = time.monotonic()
        pgbench.start()
        with self._display.figures():
            while pgbench.status is None:
                self._tick()
            seconds = time.monotonic() - self._started
            pgbench.wait(0)
            return self._drain(_transactions(source), seconds)

    def _drain(self, transactions: int, load_seconds: float) -> float:
        """Waits until target and log have all transactions; returns the seconds until the target had them."""
        applied_at = None
        seen: Sighting[tuple[int, ...]] | None = None
        while applied_at is None or self._monitor.log.counts.committed < transactions:
            figures = self._tick()
            now = time.monotonic()
            self.standing = self.standing or _standing(self._rate, load_seconds, transactions, figures, self._grace)
            if applied_at is None and figures.applied >= transactions:
                applied_at = now
            seen = observe(seen, (*_stages(figures), self._monitor.log.counts.committed), now)
            if seen.expired(now, _STALL_LIMIT):
                raise DemoError(
                    f"{figures.applied} of {transactions} transactions are applied; nothing moved for"
                    f" {_STALL_LIMIT:.0f} s"
                )
        return applied_at - self._started

    def _tick(self) -> Figures:
        time.sleep(_TICK)
        for name in self._parts:
            if name not in self._back_at:
                self._processes[name].check()
        figures = self._monitor.poll(self.kills.total())
        self._display.show(figures)
        for tid, cause in self._monitor.log.counts.failed.items():
            raise DemoError(f"unit {tid} was not applied: {cause}")
        for victim in self._killer.choose(time.monotonic(), self._done()):
            self._kill(victim)
        self._start_again()
        return figures

    def _done(self) -> dict[str, int]:
        """Returns each process's progress in units; daemons that are there have the progress of their common log."""
        done = self._monitor.done
        return {**done, **dict.fromkeys(self._daemons, done[DAEMON]), **dict.fromkeys(self._back_at, 0)}

    def _kill(self, victim: str) -> None:
        self.kills[victim] += 1
        self._display.say(f"{time.monotonic() - self._started:4.0f} s  killing the {victim} and starting it again")
        self._processes[victim].kill()
        self._back_at[victim] = time.monotonic() + self._away

    def _start_again(self) -> None:
        for name in [name for name, at in self._back_at.items() if time.monotonic() >= at]:
            del self._back_at[name]
            self._processes[name].start()


def _stages(figures: Figures) -> tuple[int, int, int]:
    return figures.captured, figures.dispatched, figures.applied


def _standing(rate: int, seconds: float, transactions: int, figures: Figures, grace: float) -> LoadStanding:
    return LoadStanding(rate, seconds, transactions, *_stages(figures), grace)


def _transactions(source: str) -> int:
    """Returns how many transactions pgbench committed: each adds a row to the history."""
    return count_of(source, "pgbench_history")
