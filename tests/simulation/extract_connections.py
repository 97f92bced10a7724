"""What the extractor's program has of the simulated PostgreSQL: libpq's replication connection, and sessions.

:class:`SimPq` stands for ``psycopg.pq``, :class:`SimPsycopg` for ``psycopg``, as far as ``kainite.capture.postgresql``
uses them. Each connection, command and query is an effect of the program's process, with the faults of its name.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import psycopg
from psycopg import pq

from simulation.extract_history import TABLES, Work
from simulation.extract_source import DATABASE, Sender, Server, SimSource
from simulation.extract_wire import flushed_in, lsn_of, lsn_text
from simulation.faults import NO_RESENDING, Effects
from simulation.loop import Process, SimEvent

_FAULTS: Final = NO_RESENDING - {"late"}
_GONE: Final = "server closed the connection unexpectedly"


class _GoneError(Exception):
    """The server did not answer."""


@dataclass(frozen=True, slots=True)
class _Result:
    """Stands for a result of libpq."""

    status: int
    rows: Sequence[Sequence[str | None]] = ()
    error: str = ""
    state: bytes | None = None

    @property
    def ntuples(self) -> int:
        return len(self.rows)

    @property
    def error_message(self) -> bytes:
        return self.error.encode()

    def get_value(self, row: int, column: int) -> bytes | None:
        value = self.rows[row][column]
        return None if value is None else value.encode()

    def error_field(self, field: int) -> bytes | None:
        return self.state


class SimPq:
    """Stands for ``psycopg.pq``; ``me`` returns the process that asks."""

    def __init__(self, source: SimSource, me: Callable[[], Process]) -> None:
        self.PGconn = SimpleNamespace(connect=lambda text: SimConnection(source, me()), ping=self._ping)
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(pq, name)

    def _ping(self, text: bytes) -> pq.Ping:
        self._source.hub.pause(0.01)
        return pq.Ping.NO_RESPONSE if self._source.server.away else pq.Ping.OK


class SimConnection:
    """Stands for libpq's connection, and for its socket."""

    server_version = 180_000

    def __init__(self, source: SimSource, process: Process) -> None:
        self._source = source
        self._effects = Effects(source.faults, process, "source", _GoneError, _FAULTS)
        self._process = process
        self._server: Server | None = None
        self._sender: Sender | None = None
        self._came: deque[bytes] = deque()
        self._ended = ""
        self.news = SimEvent(source.hub)
        self.error_message = b""
        try:
            self._server = self._effects.call("connect", self._reached)
            self.status = pq.ConnStatus.OK
        except _GoneError:
            self.status = pq.ConnStatus.BAD
            self.error_message = b"connection refused"

    @property
    def socket(self) -> SimConnection:
        return self  # ``select`` waits for it as for a socket

    def parameter_status(self, name: bytes) -> bytes:
        return b"UTF8"

    def exec_(self, command: bytes) -> _Result:
        words = command.decode().split()
        try:
            return self._effects.call(f"exec {words[0]}", partial(self._executed, words))
        except _GoneError:
            return _Result(pq.ExecStatus.FATAL_ERROR, error=_GONE)

    def wait(self, timeout: float) -> bool:
        """Waits for bytes of the server; returns whether there are some."""
        self.news.clear()
        if not (self._came or self._ended):
            self.news.wait(timeout)
        return bool(self._came or self._ended)

    def get_copy_data(self, _: int) -> tuple[int, memoryview]:
        if not self._came:
            return (-1 if self._ended and self._ended != _GONE else 0), memoryview(b"")
        frame = self._came.popleft()
        if self._sender is not None and frame[:1] == b"w":
            self._sender.taken()
        return len(frame), memoryview(frame)

    def consume_input(self) -> None:
        if self._ended == _GONE and not self._came:
            raise psycopg.OperationalError(_GONE)

    def get_result(self) -> _Result:
        return _Result(pq.ExecStatus.FATAL_ERROR, error=self._ended)

    def put_copy_data(self, status: bytes) -> None:
        """Sends a status update; what is sent to an end that is gone is lost, and so is what a dead network takes."""
        if self._ended:
            raise psycopg.OperationalError(_GONE)
        sender, flushed = self._sender, flushed_in(status)
        if sender is not None:
            delay = 0.02 * self._source.faults.chance(
                "status", self._source.faults.named(f"{self._process.name} status")
            )
            self._source.hub.after(delay, lambda: sender.status(flushed))

    def flush(self) -> None:
        pass

    def finish(self) -> None:
        if self._sender is not None:
            self._sender.end("")

    def _reached(self) -> Server:
        if self._source.server.away:
            raise _GoneError
        return self._source.server

    def _executed(self, words: list[str]) -> _Result:
        server = self._source.server
        if server.away or server is not self._server:
            raise _GoneError
        match words[0]:
            case "IDENTIFY_SYSTEM":
                row = [server.system, str(server.timeline), lsn_text(server.written), DATABASE]
                return _Result(pq.ExecStatus.TUPLES_OK, [row])
            case "TIMELINE_HISTORY":
                lines = [f"{timeline}\t{lsn_text(lsn)}\tno recovery target specified"
                         for timeline, lsn in sorted(server.left_at.items())]  # fmt: skip
                return _Result(pq.ExecStatus.TUPLES_OK, [[f"{server.timeline:08X}.history", "\n".join(lines)]])
            case "SELECT":
                slot = server.slot
                rows = [] if slot is None else [[lsn_text(slot.confirmed), "lost" if slot.lost else "reserved", None]]
                return _Result(pq.ExecStatus.TUPLES_OK, rows)
            case "START_REPLICATION":
                return self._started(server, lsn_of(words[4]))
        raise AssertionError(words)

    def _started(self, server: Server, start: int) -> _Result:
        if server.slot is None or server.slot.lost:
            return _Result(pq.ExecStatus.FATAL_ERROR, error="replication slot does not exist", state=b"42704")
        if server.slot.sender is not None:
            return _Result(pq.ExecStatus.FATAL_ERROR, error="replication slot is active", state=b"55006")
        sender = self._source.start(start, self._arrives, self._ends)
        self._sender = sender
        self._process.on_death.append(lambda: self._dies(sender))
        return _Result(pq.ExecStatus.COPY_BOTH)

    def _dies(self, sender: Sender) -> None:
        """Lets the server hear of the reader's death: soon, or only by its silence."""
        faults = self._source.faults
        if faults.chance("hears", self._process.name) < 0.8:
            self._source.hub.after(2.0 * faults.chance("hears at", self._process.name), lambda: sender.end(""))

    def _arrives(self, frame: bytes) -> None:
        self._came.append(frame)
        self.news.set()

    def _ends(self, why: str) -> None:
        self._ended = why or _GONE
        self.news.set()


@dataclass
class SimSession:
    """Stands for a session of psycopg: answers what the extractor asks the catalogue, and takes heartbeats."""

    source: SimSource
    process: Process
    closed: bool = False
    _server: Server = field(init=False)

    def __post_init__(self) -> None:
        self._effects = Effects(self.source.faults, self.process, "catalogue", psycopg.OperationalError, _FAULTS)
        self._server = self.source.server
        self._effects.call("connect", lambda: self._answer("", ()))

    def execute(self, query: str, values: Sequence[Any] = ()) -> SimSession:
        self._rows = self._effects.call("query", lambda: self._answer(query, values))
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows

    def close(self) -> None:
        self.closed = True

    def _answer(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        server = self.source.server
        if server.away or server is not self._server:
            self.closed = True
            raise psycopg.OperationalError(_GONE)
        if "pg_logical_emit_message" in query:
            self.source.commit(Work(self.source.hub.now, (), heartbeat=True))
        if "pg_publication_tables" in query:
            return [(f"public.{table.name}",) for table in TABLES]
        if "FROM pg_publication" in query:
            return [(True,)]
        if "confirmed_flush_lsn" in query:
            return [] if server.slot is None else [(lsn_text(server.slot.confirmed),)]
        if "pg_replication_slots" in query:
            return [] if server.slot is None else [(server.written - server.slot.confirmed, None)]
        if "pg_index" in query:
            table = next(table for table in TABLES if table.oid == values[0])
            return [([column.name for column in table.columns if column.key], False, None)]
        return []


class SimPsycopg:
    """Stands for ``psycopg``; ``me`` returns the process that asks."""

    def __init__(self, source: SimSource, me: Callable[[], Process]) -> None:
        self.connect = lambda *_, **__: SimSession(source, me())

    def __getattr__(self, name: str) -> Any:
        return getattr(psycopg, name)
