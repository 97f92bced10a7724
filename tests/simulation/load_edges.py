"""The source of a load in the simulator: consistent points, snapshots and their keepers, ranges of rows; and the log.

What Kainite asks of a source it asks by the functions that :meth:`LoadSource.edges` replaces. The keeper's own loop is
the real one. What the extractor and the daemon make of a transaction is in the log some time after its commit.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest import mock

import psycopg

import kainite.replicate.keeper
import kainite.replicate.page_ranges
import kainite_spark.load.copy_source
import kainite_spark.load.tasks
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.keeper import KeeperWork
from kainite.replicate.tables import ReplicaColumn, ReplicaTable, TablePart
from kainite.uow.delta import UnitEnd
from kainite_spark.load.copy_source import PostgresCopySource
from simulation.faults import Faults
from simulation.load_source import STEP, TABLES, LoadHistory, LoadTransaction
from simulation.loop import Hub, Process
from support.main_log import MainLog

SOURCE: Final = "postgresql://source"
_ROWS_OF_A_PAGE: Final = 3
_RANGE: Final = re.compile(r"FROM ONLY (\w+) WHERE ctid >= '\((\d+),0\)'::tid(?: AND ctid < '\((\d+),0\)'::tid)?")


class LoadSource:
    """A source.

    Args:
        hub, faults: of the run.
        new_process: makes a process of the world.
        history: what happens in the source.
        added: tables that are published later, and when that was; for ever until it is known.
        url: the target.
        log: takes the units.

    Attributes:
        snapshots: by their names, how many transactions each has, and the process that keeps it.
        waiting: the transactions that the log does not have yet.
    """

    def __init__(
        self,
        hub: Hub,
        faults: Faults,
        new_process: Callable[[str], Process],
        history: LoadHistory,
        added: Mapping[str, float],
        url: str,
        log: MainLog,
    ) -> None:
        self._hub = hub
        self._faults = faults
        self._new_process = new_process
        self._history = history
        self._added = added
        self._url = url
        self._log = log
        self._names = itertools.count(1)
        self._kept: dict[Process, dict[str, psycopg.Connection]] = {}
        self.snapshots: dict[str, tuple[int, Process]] = {}
        self.waiting: list[LoadTransaction] = []

    def commits(self, one: LoadTransaction) -> None:
        """Has a transaction commit; some time later the log has it, behind all that committed before."""
        self.waiting.append(one)
        self._hub.after(self._faults.between(0.1, 3.0, "extracted", one.lsn), functools.partial(self._extract, one))

    def _extract(self, last: LoadTransaction) -> None:
        while self.waiting and self.waiting[0].lsn <= last.lsn:
            one = self.waiting.pop(0)
            sent = [delta for delta in one.deltas if one.at >= self._added.get(delta.table, 0.0)]
            self._log.append(self._log.fragment(one.uow, *sent, ends=(UnitEnd(len(sent)),)))

    def _nudge(self) -> None:
        """Commits an empty transaction behind all others."""
        lsn = self._history.committed(self._hub.now) * STEP + STEP // 2 + next(self._names)
        self.commits(LoadTransaction(self._hub.now, lsn, ()))

    def _point(self) -> int:
        """Returns where a consistent point is now: at the next commit, or in front of it."""
        done = self._history.committed(self._hub.now)
        return (done + 1) * STEP if done % 2 and done < len(self._history.transactions) else done * STEP + STEP // 4

    def _published(self, *_: Any) -> tuple[ReplicaTable, ...]:
        state = self._history.states[self._history.committed(self._hub.now)]
        return tuple(
            ReplicaTable("public", name, f"public.{name}", tuple(ReplicaColumn(one, "bigint") for one in columns), (),
                         "d", 0, (TablePart(1, name, 1 + len(state[name]) // _ROWS_OF_A_PAGE, 1),))
            for name, columns in TABLES.items() if self._hub.now >= self._added.get(name, 0.0)
        )  # fmt: skip

    def _kept_snapshot(self, ends: ReplicaEnds, generation: int, *_: Any) -> ConsistentPoint:
        self._hub.pause(0.3)
        lsn, name = self._point(), f"{next(self._names)}-sim"
        keeper = self._new_process(f"keeper {name}")
        self.snapshots[name] = (self._history.committed(self._hub.now), keeper)
        work = KeeperWork(SOURCE, self._url, ends.log_partition, generation, (), 10.0)

        def keep() -> None:
            kainite.replicate.keeper._hold(work, name, None)  # type: ignore[arg-type]  # noqa: SLF001
            keeper.kill()

        self._hub.spawn(keeper, keep)
        self._hub.pause(0.1)
        return ConsistentPoint(lsn, name, SourceIdentity("1", 1, "shop"))

    def _lives(self, _: str, snapshot: str) -> bool:
        return snapshot in self.snapshots and not self.snapshots[snapshot][1].dead

    @contextmanager
    def _session(self, original: Any, url: str, name: str) -> Iterator[Any]:
        """Gives a session with the target, or what stands for one with the source."""
        if url == SOURCE:
            yield []
        else:
            with original(url, name) as session:
                yield session

    @contextmanager
    def _under(self, session: list[int], snapshot: str) -> Iterator[None]:
        if not self._lives(SOURCE, snapshot):
            raise kainite_spark.load.tasks.SnapshotLostError(snapshot)
        session.append(self.snapshots[snapshot][0])
        yield

    def _blocks(self, session: list[int], query: str) -> Iterator[bytes]:
        """Yields the rows of a range as of the session's snapshot."""
        found = _RANGE.search(query)
        assert found is not None, query
        rows = list(self._history.states[session[0]][found[1]].values())
        first, end = int(found[2]), int(found[3] or len(rows) + 1)
        for row in rows[first * _ROWS_OF_A_PAGE : end * _ROWS_OF_A_PAGE]:
            yield ("\t".join(map(str, row)) + "\n").encode()

    @contextmanager
    def edges(self) -> Iterator[None]:
        """Puts the simulated source in the place of a real one."""
        own, tasks = kainite_spark.load.copy_source, kainite_spark.load.tasks
        world = self

        class Sessions:
            @property
            def kept(self) -> dict[str, psycopg.Connection]:
                assert world._hub.process is not None
                return world._kept.setdefault(world._hub.process, {})

        original = tasks._session  # noqa: SLF001
        with ExitStack() as stack:
            for place, name, value in (
                (own, "look_at_sessions", lambda _: ()),
                (own, "check_slot", lambda _: None),
                (own, "kept_snapshot", self._kept_snapshot),
                (own, "_published", self._published),
                (own, "lives", self._lives),
                (PostgresCopySource, "nudge", lambda _: self._nudge()),
                (kainite.replicate.keeper, "execute", lambda *_: None),
                (kainite.replicate.page_ranges, "LEAST_PAGES", 1),
                (tasks, "_SESSIONS", Sessions()),
                (tasks, "_session", functools.partial(self._session, original)),
                (tasks, "_under", self._under),
                (tasks, "_blocks", self._blocks),
            ):
                stack.enter_context(mock.patch.object(place, name, value))
            yield
