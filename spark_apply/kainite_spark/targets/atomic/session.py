"""A task's connections to several targets: applies a group in one of them, or in several as one transaction.

:mod:`kainite_spark.targets.atomic` has the states, the invariants and what a crash leaves.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from kainite.base.errors import KainiteError, TargetUnavailableError
from kainite.settings.assignment import TableAssignment
from kainite_spark.targets.atomic.decisions import Decisions
from kainite_spark.targets.atomic.division import divided
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.preparing import PreparingSession, TransactionName, gid_of, gid_prefix

_Apply: TypeAlias = Callable[[PreparingSession, Sequence[Unit]], None]
_Prepare: TypeAlias = Callable[[PreparingSession, Sequence[Unit], str], None]


class _Open(NamedTuple):
    """A transaction of this session that may be prepared somewhere.

    Attributes:
        log_partition: the log's name in the targets.
        name: the transaction.
        targets: where it may be prepared.
    """

    log_partition: str
    name: TransactionName
    targets: tuple[str, ...]


class AtomicSession:
    """Implements :class:`kainite_spark.targets.contract.TargetSession`.

    Args:
        sessions: the connections, by target.
        assignment: which target a table belongs to.
        decisions: where transactions are decided.
        nonce: returns a text that it never returned before.
    """

    def __init__(
        self,
        sessions: Mapping[str, PreparingSession],
        assignment: TableAssignment,
        decisions: Decisions,
        nonce: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self._sessions = sessions
        self._assignment = assignment
        self._decisions = decisions
        self._nonce = nonce
        self._open: _Open | None = None

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        self._settle()
        found = {tid for session in self._sessions.values() for tid in session.applied(log_partition, tids)}
        if found:
            self._commit_what_is_decided(log_partition)
        return found

    def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        self._apply(
            fence,
            units,
            lambda session, own: session.apply(fence, own, folded=folded),
            lambda session, own, gid: session.prepare(fence, own, gid, folded=folded),
        )

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        self._apply(
            fence,
            (unit,),
            lambda session, own: session.apply_in_source_order(fence, own[0]),
            lambda session, own, gid: session.prepare_in_source_order(fence, own[0], gid),
        )

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()

    def _apply(self, fence: Fence, units: Sequence[Unit], apply: _Apply, prepare: _Prepare) -> None:
        self._settle()
        parts = divided(units, self._assignment)
        if len(parts) == 1:
            [(target, own)] = parts.items()
            apply(self._sessions[target], own)
        elif parts:
            self._together(fence, parts, prepare)

    def _together(self, fence: Fence, parts: Mapping[str, Sequence[Unit]], prepare: _Prepare) -> None:
        """Prepares in each target, decides, and commits in each."""
        name = TransactionName(fence.generation, fence.micro_batch, self._nonce())
        self._prepare(fence.log_partition, name, parts, prepare)
        committed = self._decisions.commit(name, tuple(parts))
        gone = self._finish(fence.log_partition, name, parts, committed=committed)
        self._open = None
        if not committed:
            raise TargetUnavailableError(f"transaction {name} was rolled back by another process: try again")
        # Another process has committed it by the decision; or it was rolled back so long ago that its decision is
        # deleted, and this task has just put one that means nothing. The acknowledgements tell.
        if gone:
            raise TargetUnavailableError(f"transaction {name} was finished by another process: ask whether it is there")

    def _prepare(
        self, log_partition: str, name: TransactionName, parts: Mapping[str, Sequence[Unit]], prepare: _Prepare
    ) -> None:
        """Prepares in each target; rolls back in all after an error."""
        tried: list[str] = []
        try:
            for target, own in parts.items():
                tried.append(target)
                # Whatever becomes of this call, its target may have prepared.
                self._open = _Open(log_partition, name, tuple(tried))
                prepare(self._sessions[target], own, gid_of(log_partition, target, name))
        except KainiteError:
            # No decision is needed: this task has put none, and never will.
            self._give_up(log_partition, name, tried)
            raise

    def _give_up(self, log_partition: str, name: TransactionName, tried: Iterable[str]) -> None:
        try:
            self._finish(log_partition, name, tried, committed=False)
            self._open = None
        except KainiteError:
            return  # :meth:`_settle` goes on; the caller raises what came first

    def _settle(self) -> None:
        """Finishes this session's last transaction, if its end is not known.

        Raises:
            TargetUnavailableError, LogUnavailableError: it cannot be finished now.
        """
        if self._open is not None:
            log_partition, name, targets = self._open
            self._finish(log_partition, name, targets, committed=self._decisions.settle(name))
            self._open = None

    def _finish(self, log_partition: str, name: TransactionName, targets: Iterable[str], *, committed: bool) -> bool:
        """Finishes a transaction; returns whether it was gone in some target."""
        found = [
            self._sessions[target].finish(gid_of(log_partition, target, name), committed=committed)
            for target in targets
        ]
        return not all(found)

    def _commit_what_is_decided(self, log_partition: str) -> None:
        """Commits the parts that a task has left over behind its decision, so that no unit is in some targets alone."""
        left = [
            (session, part)
            for target, session in self._sessions.items()
            for part in session.prepared(gid_prefix(log_partition, target))
        ]
        if left:
            decided = self._decisions.all()
            for session, part in left:
                if decided.get(part.name):
                    session.finish(part.gid, committed=True)
