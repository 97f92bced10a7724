"""A task's connections to several targets: applies a group in all of them before the first one commits.

:mod:`kainite_spark.targets.together` has the states, the invariants and what a crash leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeAlias

from kainite.base.errors import TargetRejectedError
from kainite.settings.assignment import TableAssignment
from kainite_spark.targets.atomic.division import divided
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.holding import HoldingSession

_Apply: TypeAlias = Callable[[HoldingSession, Fence, Sequence[Unit]], None]
_Parts: TypeAlias = Sequence[tuple[str, Sequence[Unit]]]
"""What each target gets, in the order in which they commit; of a unit without its tables the name alone."""


class _NamedRejectionError(TargetRejectedError):
    """A refusal that says what other targets have of the unit."""


def ledger_in(log_partition: str, target: str) -> str:
    """Returns the log's name in one target: two of several may be schemas of one database."""
    return f"{log_partition}:{target}"


class TogetherSession:
    """Implements :class:`kainite_spark.targets.contract.TargetSession`.

    Args:
        sessions: the connections, by target, in the order in which they commit.
        assignment: which target a table belongs to.
    """

    def __init__(self, sessions: Mapping[str, HoldingSession], assignment: TableAssignment) -> None:
        self._sessions = sessions
        self._assignment = assignment
        self._has: dict[str, set[int]] = {name: set() for name in sessions}  # of units that some other one lacks

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        asked = set(tids)
        for name, session in self._sessions.items():
            found = session.applied(ledger_in(log_partition, name), tids)
            self._has[name] = self._has[name] - asked | found
        complete = asked.intersection(*self._has.values())
        self._forget(complete)
        return complete

    def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        self._apply(fence, units, lambda session, own, mine: session.apply(own, mine, folded=folded))

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        self._apply(fence, (unit,), lambda session, own, mine: session.apply_in_source_order(own, mine[0]))

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()

    def _apply(self, fence: Fence, units: Sequence[Unit], apply: _Apply) -> None:
        parts = self._parts(units)
        self._hold(fence, parts, parts, apply)
        self._forget({unit.tid for unit in units})

    def _forget(self, tids: Set[int]) -> None:
        """Forgets units that all targets have: a session lives as long as its process."""
        for has in self._has.values():
            has -= tids

    def _parts(self, units: Sequence[Unit]) -> _Parts:
        touched = divided(units, self._assignment)
        found = []
        for name in self._sessions:
            own = {unit.tid: unit for unit in touched.get(name, ())}
            found.append((name, [own.get(unit.tid) or replace(unit, deltas=()) for unit in units]))
        return found

    def _hold(self, fence: Fence, left: _Parts, parts: _Parts, apply: _Apply) -> None:
        """Applies in the last of the targets that are left; before it commits, all others of them have committed."""
        if not left:
            return
        *others, (name, units) = left
        missing = [unit for unit in units if unit.tid not in self._has[name]]
        if not missing:
            self._hold(fence, others, parts, apply)
            return
        session = self._sessions[name]
        own = replace(fence, log_partition=ledger_in(fence.log_partition, name))
        with session.before_commit(lambda: self._hold(fence, others, parts, apply)):
            try:
                apply(session, own, missing)
            except _NamedRejectionError:
                raise
            except TargetRejectedError as error:
                raise _NamedRejectionError(str(error) + self._elsewhere(name, units, parts)) from error
        self._has[name].update(unit.tid for unit in missing)

    def _elsewhere(self, refusing: str, units: Sequence[Unit], parts: _Parts) -> str:
        """Returns words about the targets that have a part of a refused unit already."""
        if len(units) > 1:  # it is found by parts of the group
            return ""
        have = [name for name, [unit, *_] in parts if unit.deltas and unit.tid in self._has[name]]
        if not have:
            return ""
        return (
            f"; its part in {', '.join(have)} is applied, by a task that was interrupted: kainite uow retry tries"
            f" {refusing} alone, kainite uow discard leaves it as it is"
        )
