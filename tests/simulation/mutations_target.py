"""Safeguards against a target that was set back, and how soon the schedules notice."""

from __future__ import annotations

import sqlite3
from typing import Any

from kainite.log.format.entry import UnitStatus
from kainite_spark.targets.sqlite import ledger
from simulation.mutation import Mutation, answering

SET_BACK = "target set back"
CHECK = "kainite_spark.targets.sqlite.target:check_mark"


def _only_the_fence(original: Any) -> Any:
    """Does not ask for the units that were committed under the mark's fence."""
    return lambda name, mark, found, acknowledged: original(name, mark, found, len(mark.tids))


def _not_at_the_start(original: Any) -> Any:
    """Raises the generation without a comparison, as ``--adopt-target`` does."""
    return lambda self, mark: original(self, None)


def _committed_in_one(original: Any) -> Any:
    """Takes a unit as committed that one target has committed."""

    def overall(parts: Any) -> Any:
        done = [name for name, part in parts.items() if part.status is UnitStatus.COMMITTED]
        return (UnitStatus.COMMITTED, done[0]) if done else original(parts)

    return overall


def _for_all_targets(original: Any) -> Any:
    """Takes what one target has done for done in each."""

    def settle(self: Any, target: str, outcomes: Any, through: int) -> None:
        for name in self.assignment.names:
            original(self, name, outcomes, through)

    return settle


def _without_parts(original: Any) -> Any:
    """Forgets the parts of units in a snapshot."""

    def copy(self: Any) -> Any:
        copied = original(self)
        copied.units = {}
        return copied

    return copy


def _all_that_was_read(original: Any) -> Any:
    """Takes every unit that the apply job has read of for resolved in each target."""
    return property(lambda self: self.next_id)


def _own_units_alone(original: Any) -> Any:
    """Takes the units that the apply job's own target has for those that each target has."""
    return property(lambda self: min(self.backlog.unresolved(), default=self.next_id))


def _of_any_log(sql: str) -> str:
    """Returns a statement that takes what belongs to any log for its own."""
    return sql.replace("log_partition = ?", "? <> ''")


def _gives_up_at_once(original: Any) -> Any:
    """Gives up what the settings file does not name, while an older apply job may still write it."""

    def take(self: Any, taking: Any) -> None:
        original(self, taking)
        with sqlite3.connect(self.path) as database:
            names = database.execute(ledger.TABLES_OF_LOG, (taking.log_partition,)).fetchall()
            database.executemany(ledger.GIVE_UP_TABLE, taking.given_up(name for (name,) in names))

    return take


PARTS = "kainite.log.state.target_parts"
TWO = "two targets"
LOGS = "two logs"
LEDGER = "kainite_spark.targets.sqlite.ledger"
MARK = "kainite_spark.driver.follower:LogFollower.everywhere_below"

OF_THE_TARGET: tuple[Mutation, ...] = (
    Mutation("a target that went back is refused", CHECK, answering(None), 20, aim=SET_BACK),
    Mutation("a target that went back is refused at the start",
             "kainite_spark.driver.micro_batches:MicroBatches.raise_generation", _not_at_the_start, 20, aim=SET_BACK),
    Mutation("the units of the latest micro-batch are in the target", CHECK, _only_the_fence, 400, aim=SET_BACK),
    Mutation("a unit is committed when each target has it", f"{PARTS}:_overall", _committed_in_one, 20, aim=TWO),
    Mutation("an outcome is of one target", f"{PARTS}:TargetParts.settle", _for_all_targets, 20, aim=TWO),
    Mutation("a snapshot has the parts of units", f"{PARTS}:TargetParts.copy", _without_parts, 60, aim=TWO),
    Mutation("a target gets its own tables alone", "kainite_spark.executor.tasks:in_target",
             lambda _: lambda units, only: units, 20, aim=TWO),
    Mutation("each target has outcomes of its own", "kainite_spark.driver.job:outcomes_partition",
             lambda original: lambda partition, target="": original(partition), 20, aim=TWO),
    Mutation("the common mark is behind what is unresolved", MARK, _all_that_was_read, 20, aim=TWO),
    Mutation("the common mark is behind what another target lacks", MARK, _own_units_alone, 20, aim=TWO),
    Mutation("an acknowledgement is of one log", f"{LEDGER}:APPLIED", _of_any_log, 40, aim=LOGS),
    Mutation("a log trims its own acknowledgements", f"{LEDGER}:TRIM", _of_any_log, 40, aim=LOGS),
    Mutation("a fence is of one log", f"{LEDGER}:READ_FENCE", _of_any_log, 40, aim=LOGS),
    Mutation("a table has one log", "kainite_spark.targets.log_tables:LogTables.check", answering(None), 40, aim=LOGS),
    Mutation("a log keeps what an older job may write", "kainite_spark.targets.sqlite.target:SqliteTarget.take_tables",
             _gives_up_at_once, 40, aim=LOGS),
    Mutation("a table that another log has stays with it", f"{LEDGER}:TAKE_TABLE",
             lambda sql: sql.partition("WHERE")[0].replace("UPDATE SET", "UPDATE SET log = excluded.log,"), 40,
             aim=LOGS),
)  # fmt: skip
