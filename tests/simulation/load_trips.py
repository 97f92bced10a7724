"""Round trips of simulated processes to a PostgreSQL that is real: each takes virtual time, and may meet a fault.

A statement that waits for a lock waits in virtual time, as long as the server says who is in its way. A process that is
killed loses its sessions, which the server has ended before anything else happens; so a seed means the same each time.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from unittest import mock

import psycopg
from psycopg.pq import TransactionStatus

from simulation.faults import Faults
from simulation.loop import Hub, KilledError, Process

LOOK_S: Final = 0.25
"""Virtual seconds between two looks whether a lock is to be had."""

PATIENCE_S: Final = 30.0
"""Virtual seconds for which a statement waits for a lock; one of the apply job's tasks waits less."""

_TASK_PATIENCE_S: Final = 1.0
_REAL_S: Final = 0.004
_WAITS: Final = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
_LIVES: Final = "SELECT FROM pg_stat_activity WHERE pid = %s"


class Trips:
    """The round trips of a run.

    Args:
        hub, faults: of the run.
        url: the target.
        seen: told after each transaction.
    """

    def __init__(self, hub: Hub, faults: Faults, url: str, seen: Callable[[str], None]) -> None:
        self._hub = hub
        self._faults = faults
        self._seen = seen
        self._connect = psycopg.connect
        self._wait = psycopg.Connection.wait
        self._monitor = psycopg.connect(url, autocommit=True)
        self._sessions: dict[Process, list[psycopg.Connection]] = {}

    @contextmanager
    def instead(self) -> Iterator[None]:
        """Has the round trips of simulated processes made by this object."""
        waits = lambda connection, gen, *_, **__: self._trip(connection, gen)  # noqa: E731
        with (
            mock.patch.object(psycopg, "connect", self._connected),
            mock.patch.object(psycopg.Connection, "wait", waits),
        ):
            yield
        for sessions in self._sessions.values():
            for session in sessions:
                session.pgconn.finish()
        self._monitor.close()

    def _connected(self, *values: Any, **named: Any) -> psycopg.Connection:
        process = self._hub.process
        if process is None:
            return self._connect(*values, **named)
        name = self._faults.named(f"{process.name} pg.connect")
        if self._faults.of(name, {"freeze_before"}):
            self._freeze(process, name)
        self._hub.pause(self._faults.between(0.001, 0.02, name))
        session = self._connect(*values, **named)
        if process not in self._sessions:
            self._sessions[process] = []
            process.on_death.append(lambda: self._end(*self._sessions[process]))
        self._sessions[process].append(session)
        return session

    def _trip(self, session: psycopg.Connection, gen: Any) -> Any:
        process = self._hub.process
        if self._hub.closing:
            raise KilledError
        if process is None or session not in self._sessions.get(process, ()):
            return self._wait(session, gen)
        name = self._faults.named(f"{process.name} pg.trip")
        fault = self._faults.of(name, _FAULTS)
        slow = 4.0 if fault == "slow" else 0.0
        self._hub.pause(0.01 * self._faults.chance("there", name) ** 2 + slow)
        self._strike(process, session, fault, name, "before")
        try:
            return self._made(process, session, gen)
        finally:
            with suppress(psycopg.Error):  # of a session that has ended
                gen.close()
            if not self._hub.closing:
                if session.pgconn.transaction_status in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN):
                    self._seen(process.name)
                self._strike(process, session, fault, name, "after")

    def _strike(self, process: Process, session: psycopg.Connection, fault: str | None, name: str, when: str) -> None:
        if fault == f"kill_{when}":
            process.kill()
            self._hub.park()
        if fault == f"freeze_{when}":
            self._freeze(process, name)
        if fault == {"before": "unsent", "after": "unanswered"}[when]:
            self._end(session)
            raise psycopg.OperationalError(f"the connection is lost {when} it was used")

    def _freeze(self, process: Process, name: str) -> None:
        process.freeze()
        self._faults.later(self._faults.between(0.5, 40.0, "freeze", name), process.resume)
        self._hub.pause(0.0)

    def _made(self, process: Process, session: psycopg.Connection, gen: Any) -> Any:
        """Makes the round trip; meanwhile others go on where it waits for a lock."""
        patience = _TASK_PATIENCE_S if process.name.startswith("task") else PATIENCE_S
        limit = self._hub.now + patience
        try:
            wanted = next(gen)
            while True:
                ready = _ready(session.pgconn.socket, wanted)
                if not ready and self._is_blocked(session):
                    if self._hub.now > limit:
                        session.pgconn.get_cancel().cancel()
                        limit = self._hub.now + patience
                    self._hub.pause(LOOK_S)
                wanted = gen.send(ready)
        except StopIteration as done:
            return done.value

    def _is_blocked(self, session: psycopg.Connection) -> bool:
        row = self._monitor.execute(_WAITS, (session.info.backend_pid,)).fetchone()
        return row is not None and bool(row[0])

    def _end(self, *sessions: psycopg.Connection) -> None:
        """Ends sessions, and returns when the server has ended them."""
        pids = [session.info.backend_pid for session in sessions if session.pgconn.status == 0]
        for session in sessions:
            session.pgconn.finish()
        for pid in pids:
            while self._monitor.execute(_LIVES, (pid,)).fetchone() is not None:
                time.sleep(0.001)


_FAULTS: Final = frozenset({"slow", "unsent", "unanswered", "kill_before", "kill_after", "freeze_before",
                            "freeze_after"})  # fmt: skip


def _ready(descriptor: int, wanted: int) -> int:
    """Returns for what of reading (1) and writing (2) a socket is ready, after some milliseconds at most."""
    reads, writes, _ = select.select([descriptor] * (wanted & 1), [descriptor] * (wanted >> 1 & 1), [], _REAL_S)
    return (1 if reads else 0) | (2 if writes else 0)
