"""An application whose targets, PostgreSQL and MariaDB, commit together: its parts are the processes that a user runs.

``kainite run`` and ``kainite apply`` on Spark; the latter, and each server, may be killed while the former stands at a
chosen step of a transaction (:class:`Step`), which relays before the servers hold (:mod:`support.relays`). What has
ended is started again, as a service manager does it. Meanwhile somebody looks at both targets' states.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil
import psycopg
import pymysql

from kainite.log.format.entry import UnitStatus
from kainite.targets.mariadb.connection import connect
from support.killed_servers import KilledServer
from support.pipeline import Pipeline, emit
from support.relays import Relay, Relays, relays
from support.spark_family import is_jvm, is_worker, kill_group
from support.stores import Database
from support.waiting import eventually

LIMIT_S: Final = 240.0
GROUP: Final = 3
"""The most units of a target transaction."""

UNITS: Final = 12
"""How many units come at once; a micro-batch has no more."""

TABLES: Final = {"shop": ("item", "sold"), "crm": ("contact", "visit")}
"""Of each target a table with a key, and one without: a unit that is applied twice stands in that one twice."""

_KEYS: Final = 5
_STATEMENTS: Final = {
    "postgresql": (b"PREPARE TRANSACTION", b"COMMIT PREPARED"),
    "mariadb": (b"XA PREPARE", b"XA COMMIT"),
}
_DECISION: Final = b'"c": {"BOOL": true}'


class Step(StrEnum):
    """Where a transaction stands; ``shop`` is the target that prepares, and commits, first."""

    BEFORE_SHOP_PREPARES = "before shop prepares"
    SHOP_PREPARED = "shop has prepared"
    BEFORE_CRM_PREPARES = "before crm prepares"
    CRM_PREPARED = "crm has prepared"
    BEFORE_DECISION = "before the decision"
    DECIDED = "the decision stands"
    BEFORE_SHOP_COMMITS = "before shop commits"
    SHOP_COMMITTED = "shop has committed"
    BEFORE_CRM_COMMITS = "before crm commits"
    CRM_COMMITTED = "crm has committed"


class Struck(StrEnum):
    """Who is killed."""

    DRIVER = "the driver"
    JVM = "the driver's JVM"
    WORKERS = "the task workers"
    HOST = "the driver, its JVM, and the task workers"
    FROZEN = "the driver, and the task workers stand still until another one has taken over"
    SHOP = "the server of shop"
    CRM = "the server of crm"


class SeenState(NamedTuple):
    """What one target had at one moment: the units that it noted, and the rows of its table with a key."""

    noted: list[int]
    rows: dict[int, int]


@dataclass
class UnitHistory:
    """The units that were put on the stream, by number, from 1."""

    count: int = 0

    def more(self, units: int) -> list[bytes]:
        """Returns the lines of the next units."""
        first = self.count + 1
        self.count += units
        return [_line(n) for n in range(first, self.count + 1)]

    def of(self, target: str) -> list[int]:
        """Returns the units that are to be in a target at the end."""
        return [n for n in range(1, self.count + 1) if target in touched(n) and not is_refused(n)]

    def refused(self) -> set[str]:
        return {f"U-{n}" for n in range(1, self.count + 1) if is_refused(n)}


def touched(n: int) -> tuple[str, ...]:
    """Returns the targets of a unit: mostly both."""
    return {1: ("shop",), 3: ("crm",)}.get(n % 6, ("shop", "crm"))


def is_refused(n: int) -> bool:
    """Returns whether the target crm refuses a unit, so that no target may have it."""
    return n % 10 == 0


def rows_after(units: Collection[int]) -> dict[int, int]:
    """Returns the rows of a target's table with a key when it has these units."""
    return {n % _KEYS: n for n in sorted(units)}


def _line(n: int) -> bytes:
    deltas: list[dict[str, Any]] = []
    for target in touched(n):
        table, notes = TABLES[target]
        key = n % _KEYS if not is_refused(n) else -n
        value = -n if is_refused(n) and target == "crm" else n
        deltas.append({"table": table, "op": "upsert", "key": {"id": key}, "row": {"v": value}})
        deltas.append({"table": notes, "op": "insert", "row": {"n": n}})
    named = [{"uow": f"U-{n}", **delta} for delta in deltas]
    return emit(*named, {"uow": f"U-{n}", "end": True, "count": len(named)})


@dataclass
class TogetherProcesses:
    """The processes, and what they are judged by.

    Attributes:
        pipeline: the stream, the log and the daemon's settings.
        file: the settings file.
        servers: of the targets, by name.
        databases: the targets, as somebody beside Kainite reaches them.
        relays: what holds.
        before: the relay before each target, and before the log's store (``log``).
        apart: the most units of both targets that one has and the other does not have yet.
        in_order: whether the units in a target are always the first ones.
    """

    pipeline: Pipeline
    file: Path
    servers: Mapping[str, KilledServer]
    databases: Mapping[str, Database]
    relays: Relays
    before: Mapping[str, Relay]
    apart: int
    in_order: bool
    history: UnitHistory = field(default_factory=UnitHistory)
    over: threading.Event = field(default_factory=threading.Event)
    looks: int = 0
    looking: Future[None] | None = None
    _apply: subprocess.Popen[bytes] | None = None
    _frozen: list[psutil.Process] = field(default_factory=list)

    def strike(self, step: Step, struck: Struck) -> None:
        """Puts units, kills somebody when their first transaction stands at a step, and waits until all are applied."""
        relay, text, answer = self._place(step)
        with self.relays.holding(relay, text, answer=answer) as hold:
            self.put()
            self.until(hold.reached.is_set)
            self._kill(struck)
        self.settle()
        for process in self._frozen:
            with suppress(psutil.NoSuchProcess):
                process.resume()
        self.until(lambda: not any(process.is_running() for process in self._frozen))
        self._frozen = []

    def put(self) -> None:
        """Puts units on the stream."""
        self.pipeline.put(self.history.more(UNITS))

    def settle(self) -> None:
        """Waits until both targets, and the log, have what they are to have of all units."""
        self.until(self._is_settled)

    def end(self) -> None:
        """Ends the apply job in good order; nothing is left then, in the targets or in the log."""
        assert self._apply is not None
        self._apply.send_signal(signal.SIGTERM)
        assert self._apply.wait(LIMIT_S) == 0, self._printed()
        self._apply = None
        assert "no transaction is left prepared" in self._command("apply", "resolve")
        assert self.prepared() == []
        assert list(self.pipeline.store.read_decisions("0")) == []

    def prepared(self) -> list[Any]:
        """Returns what is prepared in the servers, whoever prepared it."""
        listed = {"postgresql": "SELECT gid FROM pg_prepared_xacts", "mariadb": "XA RECOVER"}
        return [row for each in self.databases.values() for row in each.rows(listed[each.kind])]

    def until(self, condition: Callable[[], object]) -> None:
        """Waits until a condition holds; starts the apply job when it has ended meanwhile."""

        def holds() -> object:
            self._tend()
            return condition()

        eventually(holds, LIMIT_S, 0.1)

    def look(self) -> None:
        """Looks at the targets, one after the other, until :attr:`over` is set, and judges what it sees."""
        with ExitStack() as opened:
            eyes = {name: opened.enter_context(closing(_Eye(name, each))) for name, each in self.databases.items()}
            before: dict[str, SeenState] = {}
            while not self.over.is_set():
                for name, eye in eyes.items():
                    if (seen := eye.look()) is not None:
                        self._judge(name, seen, before)
                        before[name] = seen
                        self.looks += 1
                self.over.wait(0.02)

    def close(self) -> None:
        self.over.set()
        for process in self._frozen:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._end_apply()

    def _judge(self, name: str, seen: SeenState, before: Mapping[str, SeenState]) -> None:
        """Judges a state: each unit is whole and once, none before an earlier one; the targets are not far apart."""
        expected = self.history.of(name)
        noted = set(seen.noted)
        assert len(noted) == len(seen.noted), f"{name} has a unit twice: {seen.noted}"
        assert noted <= set(expected), f"{name} has what it must not have: {noted - set(expected)}"
        assert seen.rows == rows_after(noted), f"{name} has a unit in part: {seen}"
        if self.in_order:
            assert sorted(noted) == expected[: len(noted)], f"{name} has a unit before an earlier one: {noted}"
        for other, former in before.items():
            both = {n for n in former.noted if name in touched(n)}
            assert len(both - noted) <= self.apart, f"{name} lacks what {other} had before: {sorted(both - noted)}"

    def _is_settled(self) -> bool:
        for name, database in self.databases.items():
            seen = _Eye(name, database).once()
            if seen is None or len(seen.noted) < len(self.history.of(name)):
                return False
            self._judge(name, seen, {})
        statuses = self.pipeline.statuses()
        failed = {name for name, status in statuses.items() if status == UnitStatus.FAILED.value}
        if failed != self.history.refused():
            return False
        rest = {status for name, status in statuses.items() if name not in failed}
        return rest <= {UnitStatus.COMMITTED.value} and self.prepared() == []

    def _place(self, step: Step) -> tuple[Relay, bytes, bool]:
        """Returns where a step is: the relay, the text of the request, and whether its answer is held."""
        number = list(Step).index(step)
        what, answer = divmod(number, 2)
        if step in (Step.BEFORE_DECISION, Step.DECIDED):
            return self.before["log"], _DECISION, bool(answer)
        name = list(TABLES)[what % 3]
        prepare, commit = _STATEMENTS[self.databases[name].kind]
        return self.before[name], prepare if what < 2 else commit, bool(answer)

    def _kill(self, struck: Struck) -> None:
        if struck in (Struck.SHOP, Struck.CRM):
            server = self.servers["shop" if struck is Struck.SHOP else "crm"]
            server.kill()
            server.start()
            return
        assert self._apply is not None
        family = psutil.Process(self._apply.pid).children(recursive=True)
        workers = [process for process in family if is_worker(process)]
        doomed = {Struck.JVM: list(filter(is_jvm, family)), Struck.WORKERS: workers, Struck.HOST: family}.get(
            struck, []
        )
        if struck is Struck.FROZEN:
            for process in workers:
                process.suspend()
            self._frozen = workers
        killed = [process for process in doomed if _killed(process)]
        assert killed or struck in (Struck.DRIVER, Struck.FROZEN), f"{struck} is not there"
        if struck in (Struck.DRIVER, Struck.HOST, Struck.FROZEN):
            self._apply.kill()

    def _tend(self) -> None:
        """Starts the apply job if it has ended; raises what ended the looks at the targets."""
        if self._apply is None or self._apply.poll() is not None:
            self._end_apply()
            program = Path(__file__).parents[1] / "end_to_end/apply_in_small_steps.py"
            with self._log.open("ab") as log:
                self._apply = subprocess.Popen(
                    [sys.executable, str(program), str(self.file), str(UNITS), str(GROUP)], stdout=log, stderr=log,
                    env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
                    start_new_session=True,
                )  # fmt: skip
        if self.looking is not None and self.looking.done():
            self.looking.result()

    def _end_apply(self) -> None:
        if self._apply is not None:
            kill_group(self._apply)
            self._apply.wait()
            self._apply = None

    def _command(self, *words: str) -> str:
        command = [sys.executable, "-m", "kainite", *words, "-p", str(self.file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def _log(self) -> Path:
        return self.file.with_name("apply.log")

    def _printed(self) -> str:
        return self._log.read_text(encoding="utf-8")[-3000:]


class _Eye:
    """Looks at one target by a connection of its own, which it opens anew when the server was killed."""

    def __init__(self, name: str, database: Database) -> None:
        self._queries = [f"SELECT n FROM {TABLES[name][1]} ORDER BY n", f"SELECT id, v FROM {TABLES[name][0]}"]
        self._database = database
        self._connection: Any = None

    def look(self) -> SeenState | None:
        """Returns the target's state; None while the server does not answer."""
        try:
            if self._connection is None:
                self._connection = self._opened()
            with self._connection.cursor() as cursor:
                if self._database.kind == "mariadb":
                    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                noted, rows = (_answer(cursor, query) for query in self._queries)
            self._connection.rollback()
        except (psycopg.Error, pymysql.Error):
            self.close()
            return None
        return SeenState([int(n) for (n,) in noted], {int(key): int(value) for key, value in rows})

    def once(self) -> SeenState | None:
        """Does as :meth:`look`, and closes the connection."""
        with closing(self):
            return self.look()

    def close(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error, pymysql.Error):
                self._connection.close()
            self._connection = None

    def _opened(self) -> Any:
        if self._database.kind == "mariadb":
            snapshots = connect(self._database.url)
            snapshots.query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            return snapshots
        connection = psycopg.connect(self._database.url)
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        return connection


def _answer(cursor: Any, query: str) -> Sequence[Any]:
    cursor.execute(query)
    return list(cursor.fetchall())


def _killed(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        process.kill()
        return True
    return False


@contextmanager
def together_processes(
    kinds: Mapping[str, str], pipeline: Callable[[str, Database], Pipeline], endpoint: str, consistency: str = "prefix"
) -> Iterator[TogetherProcesses]:
    """Gives the processes of an application with the targets ``shop`` and ``crm``, whose states are looked at.

    Args:
        kinds: the kind of each target's server, as :class:`KilledServer` names it.
        pipeline: makes the stream and the log, given the address of the store, and one of the targets.
        endpoint: the address of Kinesis and DynamoDB.
        consistency: ``targetConsistency``.
    """
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="kainite-t-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        servers = {name: opened.enter_context(closing(KilledServer(kind))) for name, kind in kinds.items()}
        databases = {name: Database(server.start()) for name, server in servers.items()}
        for name, (table, notes) in TABLES.items():
            check = "CHECK (v >= 0)" if name == "crm" else ""
            databases[name].run(
                f"CREATE TABLE {table} (id bigint PRIMARY KEY, v bigint {check}); CREATE TABLE {notes} (n bigint);"
            )
        at = opened.enter_context(relays())
        store, port = at.at_port(int(endpoint.rpartition(":")[2]))
        before, addresses = {"log": store}, {}
        for name, database in databases.items():
            before[name], addresses[name] = _behind_relay(at, database, folder / name)
        made_by = pipeline(f"http://127.0.0.1:{port}", databases["shop"])
        file = made_by.properties(**{
            "target.shop": addresses["shop"], "target.crm": addresses["crm"],
            "target.crm.tables": ", ".join(TABLES["crm"]), "targetCommit": "atomic", "targetConsistency": consistency,
            "applyMaster": "local[2]", "applyLeaseMillis": "2000", "metricsPort": "0",
        })  # fmt: skip
        in_order = consistency == "prefix"
        made = opened.enter_context(closing(TogetherProcesses(
            made_by, file, servers, databases, at, before, GROUP if in_order else 2 * GROUP, in_order
        )))  # fmt: skip
        with ThreadPoolExecutor(1) as pool, made_by.daemon(file):
            made.looking = pool.submit(made.look)
            try:
                yield made
            finally:
                made.over.set()
            made.looking.result()
        assert made.looks > 0


def _behind_relay(at: Relays, database: Database, folder: Path) -> tuple[Relay, str]:
    """Puts a relay before a target; returns it, and the target's address there."""
    folder.mkdir()
    address, _, server = database.url.rpartition("=")
    if database.kind == "mariadb":
        path = folder / "s"
        return at.at_socket(path, Path(server)), f"{address}={path}"
    name = ".s.PGSQL.5432"
    return at.at_socket(folder / name, Path(server) / name), f"{address}={folder}"
