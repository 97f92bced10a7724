"""A replica whose parts are the processes that a user runs; each may be killed at a chosen step of a command.

``kainite extract``, ``run`` and ``apply`` follow the source as services: one that has ended is started again, as a
service manager does it. ``kainite replicate load``, ``add``, ``reload`` and ``cutover`` run beside them, with processes
of their own or on Spark (:meth:`ReplicaProcesses.copy_by`).

A *gate* is a step of a command in the target: triggers on the ledger's tables wait there, in the command's transaction,
as long as the gate is closed. So somebody can be killed while a command stands at exactly that step.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg

from kainite.log.contract import LogStore
from kainite.log.format.entry import UnitStatus
from kainite.log.views.unit_table import read_rows
from kainite.replicate import ledger, table_ledger
from kainite_demo.postgres_server import programs
from support.live_replica import AccountTraffic, look_at_counts
from support.replicas import Loading, run
from support.spark_family import is_jvm, is_worker, kill_group
from support.waiting import eventually

SERVICES: Final = ("extract", "run", "apply")
LIMIT_S: Final = 240.0

QUICK_SETTINGS: Final = """
kinesisEndpoint = {endpoint}
dynamoDBEndpoint = {endpoint}
regionName = us-east-1
applyMaster = local[{cores}]
metricsPort = 0
idleTimeBetweenReadsInMillis = 100
failoverTimeMillis = 2000
applyLeaseMillis = 2000
logLeaseMillis = 2000
"""
"""What a settings file has beside the replica: the doubles of AWS, and short leases."""

PROCESSES: Final = "local[2]"
"""The master with which a load's steps run in processes of the command."""

ON_SPARK: Final = "local[2,4]"
"""One with which they run as tasks of Spark's."""

_CLASS: Final = 20_261_123
"""What the gates' advisory locks have in common."""


class Gate(StrEnum):
    """A step at which a command stands still; the value is the ledger's change that it has just made."""

    BEGUN = "begun"
    PLANNED = "planned"
    COPIED = "a range is copied"
    CATCHING_UP = "catching up"
    LIVE = "live"
    FOREIGN_KEY = "a foreign key is made"
    CUT_OVER = "cut over"


_TRIGGERS: Final = {
    Gate.BEGUN: "INSERT OR UPDATE ON kainite_load FOR EACH ROW WHEN (NEW.state = 'loading' AND NEW.position IS NULL)",
    Gate.PLANNED: "INSERT ON kainite_load_step FOR EACH STATEMENT",
    Gate.COPIED: "UPDATE OF done_at ON kainite_load_step FOR EACH ROW WHEN (NEW.done_at IS NOT NULL)",
    Gate.CATCHING_UP: "UPDATE ON kainite_load_table FOR EACH ROW WHEN (NEW.state = 'catching up')",
    Gate.LIVE: "UPDATE OF state ON {table} FOR EACH ROW WHEN (NEW.state = 'live')",
    Gate.FOREIGN_KEY: "UPDATE OR DELETE ON kainite_load_foreign_key FOR EACH STATEMENT",
    Gate.CUT_OVER: "UPDATE ON kainite_load FOR EACH ROW WHEN (NEW.state = 'cut over')",
}
_FUNCTION: Final = f"""
    CREATE FUNCTION kainite_gate() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock_shared({_CLASS}, TG_ARGV[0]::int); RETURN NULL; END $$"""
_SOMEBODY: Final = f"""
    SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = {_CLASS} AND objid = %s
                   AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""


class Victim(StrEnum):
    """Who is killed."""

    COMMAND = "the command"
    COMMAND_JVM = "the command's JVM"
    COMMAND_WORKERS = "the command's workers"
    EXTRACTOR = "kainite extract"
    DAEMON = "kainite run"
    APPLY = "kainite apply"
    APPLY_JVM = "the JVM of kainite apply"


_SERVICES_OF: Final = {Victim.EXTRACTOR: "extract", Victim.DAEMON: "run", Victim.APPLY: "apply",
                      Victim.APPLY_JVM: "apply"}  # fmt: skip


@dataclass
class ReplicaProcesses:
    """A source, its replica, and the processes between them.

    Attributes:
        world: both databases.
        file: the settings file.
        store: the log's.
        traffic: transactions in the source.
        over: set when nobody looks at the target's states any more.
        wanted: the services that are to run.
        services: their processes.
        seen: the states of the target that were looked at, by the count of the source's transactions.
    """

    world: Loading
    file: Path
    store: LogStore
    traffic: AccountTraffic
    over: threading.Event = field(default_factory=threading.Event)
    wanted: tuple[str, ...] = ()
    services: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    seen: list[int] = field(default_factory=list)
    looking: Future[None] | None = None

    def begin(self, rows: str) -> None:
        """Fills the source, makes the target's tables and gates, and starts the services."""
        self.world.in_source(rows)
        self.done("replicate", "init", "--write")
        run(self.world.ends.target, *ledger.CREATE, *table_ledger.CREATE, _FUNCTION, *_triggers())
        self.wanted = SERVICES

    def copy_by(self, master: str) -> None:
        """Lets the commands that begin from now on run with a master."""
        text = self.file.read_text().replace(f"applyMaster = {PROCESSES}\n", f"applyMaster = {ON_SPARK}\n")
        self.file.write_text(text if master == ON_SPARK else text.replace(ON_SPARK, PROCESSES))

    def attempt(self, *words: str) -> tuple[int, str]:
        """Has a command do its work; returns its exit code and what it printed last."""
        with self._started(words) as process:
            self.until(lambda: process.poll() is not None)
        return process.returncode, self._printed(words)

    def done(self, *words: str) -> str:
        """Has a command do its work, which must end well; returns what it printed last."""
        code, output = self.attempt(*words)
        assert code == 0, f"{words}: {output}"
        return output

    def strike(self, words: tuple[str, ...], gate: Gate, victims: tuple[Victim, ...]) -> bool:
        """Starts a command, kills some when it stands at a gate; tells whether it ended well all the same."""
        with self._started(words) as process:
            with closed(self.world.ends.target, gate) as somebody_waits:
                self.until(lambda: somebody_waits() or process.poll() is not None)
                assert process.poll() is None, f"{words} never stood at {gate}: {self._printed(words)}"
                for victim in victims:
                    self._kill(victim, process)
            self.until(lambda: process.poll() is not None)
        return process.returncode == 0

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Starts a command of Kainite's, with a group of processes of its own; its output is in a file."""
        path = f"{programs()}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        with self._log(words).open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "kainite", *words, "-p", str(self.file)],
                cwd=self.file.parent, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            )  # fmt: skip

    def settle(self) -> None:
        """Waits until the target has all that has committed, and has both sides compared to the row."""
        self.until(lambda: self.world.in_target("SELECT n FROM counter") == [(self.traffic.count,)])
        self.compare()
        assert self.world.in_target("SELECT count(*) FROM kainite_held_delta") == [(0,)]
        keys = self.world.in_target("SELECT conname, convalidated FROM pg_constraint WHERE contype = 'f'")
        assert ("entry_giver", True) in keys
        assert all(validated for _, validated in keys)
        self.until(self._all_are_committed)

    def compare(self) -> None:
        """Has both sides compared to the row."""
        assert "equal: " in self.done("verify")
        assert self.world.differences() == {}

    def until(self, condition: Callable[[], object]) -> None:
        """Waits until a condition holds; starts services that have ended meanwhile."""

        def holds() -> object:
            self._tend()
            return condition()

        eventually(holds, LIMIT_S, 0.05)

    def look(self) -> None:
        """Looks at the target's states until :attr:`over` is set: each is one that the source had."""
        with psycopg.connect(self.world.ends.target, autocommit=True) as connection:
            while not self.over.is_set():
                if self.wanted:
                    self.seen.extend(look_at_counts(connection, self.world.ends.log_partition))
                self.over.wait(0.005)

    def close(self) -> None:
        self.over.set()
        for name in list(self.services):
            self._end(name)

    def _tend(self) -> None:
        """Starts services that have ended; raises what ended the looks at the target."""
        for name in self.wanted:
            if name not in self.services or self.services[name].poll() is not None:
                self._end(name)
                self.services[name] = self.start(name)
        if self.looking is not None and self.looking.done():
            self.looking.result()

    def _end(self, name: str) -> None:
        if process := self.services.pop(name, None):
            kill_group(process)
            process.wait()

    @contextmanager
    def _started(self, words: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
        """Gives a command that runs; kills it, and what it has left behind."""
        process = self.start(*words)
        try:
            yield process
        finally:
            kill_group(process)
            process.wait()

    def _printed(self, words: tuple[str, ...]) -> str:
        return self._log(words).read_text(encoding="utf-8")[-3000:]

    def _log(self, words: tuple[str, ...]) -> Path:
        return self.file.with_name(f"{words[1] if words[0] == 'replicate' else words[0]}.log")

    def _kill(self, victim: Victim, command: subprocess.Popen[bytes]) -> None:
        """Kills somebody; a process's children live on, and find out by themselves."""
        process = self.services[_SERVICES_OF[victim]] if victim in _SERVICES_OF else command
        if victim in (Victim.COMMAND, Victim.EXTRACTOR, Victim.DAEMON, Victim.APPLY):
            process.kill()
            return
        is_doomed = is_worker if victim is Victim.COMMAND_WORKERS else is_jvm
        doomed = [one for one in psutil.Process(process.pid).children(recursive=True) if is_doomed(one)]
        assert doomed or victim is Victim.APPLY_JVM, f"{victim} is not there"  # that job may just be starting
        for one in doomed:
            with suppress(psutil.NoSuchProcess):
                one.kill()

    def _all_are_committed(self) -> bool:
        """Tells whether the log has each unit as committed; their numbers must be dense."""
        rows = [row for row in read_rows(self.store, "0") if row.number is not None]
        numbers = [row.number or 0 for row in rows]
        assert numbers == list(range(min(numbers), min(numbers) + len(numbers))) if numbers else True
        return {row.status for row in rows} <= {UnitStatus.COMMITTED.value}


@contextmanager
def replica_processes(
    world: Loading, file: Path, store: LogStore, kind: type[ReplicaProcesses] | None = None, traffic: Any = None
) -> Iterator[ReplicaProcesses]:
    """Gives the processes of a replica; looks at the target's states from its first load on.

    Args:
        world: both databases.
        file: the settings file.
        store: the log's.
        kind, traffic: for a source of another kind.
    """
    traffic = traffic or AccountTraffic(world.ends.source.url)
    with ThreadPoolExecutor(1) as pool, closing((kind or ReplicaProcesses)(world, file, store, traffic)) as made:
        made.looking = pool.submit(made.look)
        yield made
        made.over.set()
        made.looking.result()
    assert made.seen
    assert made.seen == sorted(made.seen)


@contextmanager
def closed(target: str, gate: Gate) -> Iterator[Callable[[], bool]]:
    """Closes a gate; gives what tells whether somebody stands there."""
    place = list(Gate).index(gate)
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s, %s)", (_CLASS, place))

        def somebody_waits() -> bool:
            row = connection.execute(_SOMEBODY, (place,)).fetchone()
            return row is not None and bool(row[0])

        yield somebody_waits


def _triggers() -> Iterator[str]:
    for place, (gate, what) in enumerate(_TRIGGERS.items()):
        assert list(Gate)[place] is gate
        for number, table in enumerate(("kainite_load", "kainite_load_table") if "{table}" in what else ("",)):
            yield (f"CREATE TRIGGER gate_{place}_{number} AFTER {what.format(table=table)}"
                   f" EXECUTE FUNCTION kainite_gate({place})")  # fmt: skip
