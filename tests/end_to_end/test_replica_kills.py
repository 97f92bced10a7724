"""SIGKILL of each process of a replica, at each step of ``load``, ``reload``, ``add`` and ``cutover``.

All processes are those that a user runs: extractor, daemon and apply job as services, the command with its driver, JVM
and Spark workers (:mod:`support.replica_processes`). A command that did not end well is started again until it has.
Then ``kainite verify`` says that both sides are equal, the log has each unit once and committed, and each state of the
target that was seen meanwhile is one that the source had. CI kills at some places; ``-m long`` everybody at each gate.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.ledger import LoadState
from kainite.replicate.new_file import write_properties
from kainite.replicate.table_ledger import load_name
from kainite.store.dynamodb import DynamoDBStore
from support.live_replica import DRIFT, FILL, TABLES
from support.postgresql_source import source
from support.replica_processes import QUICK_SETTINGS, Gate, ReplicaProcesses, Victim, replica_processes
from support.replicas import Loading, run

__all__ = ["source"]
pytestmark = pytest.mark.xdist_group("spark")

_CLOSE: Final = (
    "ALTER DATABASE {0} SET default_transaction_read_only = on",
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database()"
    " AND backend_type = 'client backend' AND application_name NOT LIKE 'kainite%' AND pid <> pg_backend_pid()",
)
_ANEW: Final = ("--anew",)
_PLACE: Final = "postgresql://kainite@source/shop"
_TRIES: Final = 5


@dataclass
class CommandKills:
    """A replica and a command that is carried out again and again while somebody is killed.

    Attributes:
        replica: the replica's processes.
        what: the command.
    """

    replica: ReplicaProcesses
    what: str
    _tables: Iterator[int] = field(default_factory=itertools.count)

    def strike(self, gate: Gate, *victims: Victim) -> None:
        """Kills some while the command stands at a gate, starts it again until it is done, and compares."""
        words = self._spoilt()
        begun = self._generation(words)
        anew = _ANEW if self.what == "load" and begun else ()
        well = self.replica.strike((*words, *anew), gate, victims)
        for _ in range(_TRIES):
            if well:
                break
            again = anew if self._generation(words) == begun else ()
            well = self.replica.attempt(*words, *again)[0] == 0
        assert well, f"{words} did not end well {_TRIES} times in a row"
        self._compare()

    def _spoilt(self) -> tuple[str, ...]:
        """Lets the target drift, or makes a table, or closes the source; returns the command's words."""
        world = self.replica.world
        match self.what:
            case "add":
                table = f"more_{next(self._tables)}"
                world.in_source(
                    f"CREATE TABLE {table} (id int PRIMARY KEY, above int REFERENCES account)",
                    f"INSERT INTO {table} SELECT n, n FROM generate_series(1, 200) n",
                )
                return "replicate", "add", table
            case "cutover":
                world.in_source(*(each.format(world.ends.source.slot) for each in _CLOSE))
                return "replicate", "cutover"
        if world.found().state is LoadState.LIVE:
            world.in_target(DRIFT)
        return "replicate", self.what, *(("account",) if self.what == "reload" else ())

    def _generation(self, words: tuple[str, ...]) -> int:
        log = self.replica.world.ends.log_partition
        name = load_name(log, ("public", words[2])) if len(words) > 2 else log
        rows = self.replica.world.in_target(f"SELECT generation FROM kainite_load WHERE log_partition = '{name}'")
        return int(rows[0][0]) if rows else 0

    def _compare(self) -> None:
        replica = self.replica
        if self.what == "cutover":
            assert replica.world.found().state is LoadState.CUT_OVER
            assert replica.world.differences() == {}
            replica.done("replicate", "cutover", "--undo")
            replica.world.in_source(
                "SET default_transaction_read_only = off",
                f"ALTER DATABASE {replica.world.ends.source.slot} RESET default_transaction_read_only",
            )
        replica.traffic.go(3)
        replica.settle()


@contextmanager
def replica(
    source: SourceSlot, target: str, dynamodb: Any, kinesis: Any, endpoint: str, folder: Path
) -> Iterator[ReplicaProcesses]:
    """Gives the processes of a replica that follows its source."""
    name = source.slot
    kinesis.create_stream(StreamName=name, ShardCount=1)
    run(source.url, "DROP TABLE item, note", "DROP PUBLICATION changes", TABLES)
    world = Loading(ReplicaEnds(source, target, f"{name}-log/0"), 0)
    file = folder / "shop.properties"
    write_properties(file, _PLACE, target, name)
    file.write_text(
        file.read_text().replace(_PLACE, repr(source.url)) + QUICK_SETTINGS.format(endpoint=endpoint, cores=2)
    )
    with replica_processes(world, file, DynamoDBStore(dynamodb, f"{name}-log")) as made:
        made.begin(FILL)
        yield made
    kinesis.delete_stream(StreamName=name)


SOME: Final = (
    ("load", Gate.COPIED, (Victim.COMMAND_WORKERS, Victim.EXTRACTOR)),
    ("reload", Gate.LIVE, (Victim.COMMAND_JVM, Victim.APPLY)),
    ("cutover", Gate.CUT_OVER, (Victim.COMMAND, Victim.DAEMON)),
)


@pytest.mark.timeout(900)
def test_processes_are_killed_at_some_steps(
    source: SourceSlot, postgres: str, dynamodb: Any, kinesis: Any, moto_endpoint: str, tmp_path: Path
) -> None:
    with replica(source, postgres, dynamodb, kinesis, moto_endpoint, tmp_path) as made:
        for what, gate, victims in SOME:
            CommandKills(made, what).strike(gate, *victims)


GATES: Final = {
    "load": (Gate.BEGUN, Gate.PLANNED, Gate.COPIED, Gate.LIVE),
    "reload": (Gate.BEGUN, Gate.PLANNED, Gate.COPIED, Gate.CATCHING_UP, Gate.LIVE, Gate.FOREIGN_KEY),
    "add": (Gate.BEGUN, Gate.PLANNED, Gate.COPIED, Gate.CATCHING_UP, Gate.LIVE, Gate.FOREIGN_KEY),
    "cutover": (Gate.CUT_OVER,),
}
_OF_SPARK: Final = (Victim.COMMAND_JVM, Victim.COMMAND_WORKERS)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("what", GATES)
def test_everybody_is_killed_at_every_step(
    source: SourceSlot, postgres: str, dynamodb: Any, kinesis: Any, moto_endpoint: str, tmp_path: Path, what: str
) -> None:
    with replica(source, postgres, dynamodb, kinesis, moto_endpoint, tmp_path) as made:
        made.done("replicate", "load")
        kills = CommandKills(made, what)
        for gate, victim in itertools.product(GATES[what], Victim):
            if victim is Victim.COMMAND_WORKERS and gate is not Gate.COPIED:
                continue  # there may be none
            if what != "cutover" or victim not in _OF_SPARK:
                kills.strike(gate, victim)
