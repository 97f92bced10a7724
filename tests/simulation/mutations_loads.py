"""Safeguards of loads that go on beside an apply job, and how soon the schedules notice."""

from __future__ import annotations

from typing import Any, Final

from kainite.capture.postgresql.transactions import commit_lsn_of
from simulation.mutation import Mutation, answering

LOADS: Final = "loads"
_LEDGER: Final = "kainite.replicate.ledger"
_TABLE_LEDGER: Final = "kainite.replicate.table_ledger"
_LOADED: Final = "kainite_spark.targets.held_deltas:KnownTables"
_CATCH_UP: Final = "kainite_spark.load.catch_up:CatchUp"


def _without(part: str, instead: str = "") -> Any:
    """Takes a part out of a statement."""

    def shortened(statement: str) -> str:
        assert part in statement, part
        return statement.replace(part, instead)

    return shortened


def _applies(before: bool, at: bool) -> Any:
    """Applies deltas of live tables that lie before their table's point, or not those at the point."""

    def instead(_: Any) -> Any:
        def applied(self: Any, unit: Any) -> Any:
            lsn = commit_lsn_of(unit.uow)
            for delta in unit.deltas:
                table = self._table(delta.table)
                if table is None or (
                    table.live and (before or lsn is None or lsn > table.point or (at and lsn == table.point))
                ):
                    yield delta

        return applied

    return instead


def _takes_all(original: Any) -> Any:
    """Applies all that was held, also what the copy has."""

    def units(self: Any, held: Any) -> Any:
        from dataclasses import replace

        return original(replace(self, position=0), held)

    return units


def _takes_later(original: Any) -> Any:
    """Leaves out what was held of the first unit behind the copy."""

    def units(self: Any, held: Any) -> Any:
        from dataclasses import replace

        return original(replace(self, position=self.position + 1), held)

    return units


def _passed_at_once(_: Any) -> Any:
    """Takes the apply job to be behind the table's point at once, in both places that look."""

    def passed(self: Any) -> bool:
        self.load.steps.rows("UPDATE kainite_load_table SET reached = position WHERE state <> 'live' RETURNING 1")
        return True

    return passed


OF_LOADS: tuple[Mutation, ...] = (
    Mutation("a range is copied once", f"{_LEDGER}:CLAIM", _without("AND done_at IS NULL"), 10, aim="late copies"),
    Mutation("a range is copied under its own load", f"{_LEDGER}:HOLD",
             _without("generation = %s", "generation >= %s"), 10, aim="loads left"),
    Mutation("a load shuts the apply job out", f"{_LEDGER}:CLOSE_FENCE", _without("9223372036854775807", "-1"), 40,
             aim=LOADS),
    Mutation("nobody applies before a load is live",
             "kainite_spark.targets.postgresql.target:refuse_while_loading", answering(None), 10, aim=LOADS),
    Mutation("a unit before the copy is left out", f"{_LOADED}._applied", _applies(before=True, at=True), 10,
             aim=LOADS),
    Mutation("a unit at the copy's point is applied", f"{_LOADED}._applied", _applies(before=False, at=False), 10,
             aim=LOADS),
    Mutation("changes of a table that is loaded are held", f"{_LOADED}._held", answering(()), 20, aim=LOADS),
    Mutation("what was held before the copy is left out", f"{_CATCH_UP}._units", _takes_all, 20, aim=LOADS),
    Mutation("what was held at the copy's point is applied", f"{_CATCH_UP}._units", _takes_later, 40, aim=LOADS),
    Mutation("a table goes live behind its point", f"{_CATCH_UP}._is_passed", _passed_at_once, 20, aim=LOADS),
    Mutation("a table that was given up is loaded anew", "kainite.replicate.giving_up:FORGET_POINT",
             _without("position = NULL, snapshot = NULL", "seen_at = seen_at"), 40, aim="tables given up"),
    Mutation("version of the tables' states", f"{_TABLE_LEDGER}:RAISE_VERSION",
             _without("tables = kainite_fence.tables + 1", "tables = kainite_fence.tables"), 60, aim=LOADS),
)  # fmt: skip
