"""Notes in the log which target a table belongs to, and copies the outcomes of each of several targets into it.

:mod:`kainite.log.state.target_parts` has the states of a unit in several targets, and what a crash leaves.

The assignment of tables is the owner's settings'. It is noted at the mount, before anything is appended, when the log
has another one. Units that were dispatched before keep their parts. A target that units still wait for cannot go, nor
can a table of theirs, since the target's apply job reads the same settings, and knows the target's tables alone. An
application with unresolved units cannot change between one target without a name and several. In each case nobody would
apply these units.

Daemons whose files differ so note their own assignments in turn, with each change of owners, and what they dispatch
meanwhile goes where the owner's file says. That is told at the mount (``targets changed``), by ``/health`` of the
others and by ``kainite status`` (:mod:`kainite.verdict.targets`); and a daemon whose file differs from the log leaves
the log to others first (:mod:`kainite.peers.sharing.membership`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from kainite.base.clock import epoch_ms
from kainite.base.errors import LogRequestError
from kainite.base.logs import event
from kainite.base.words import are, counted
from kainite.log.format.entry import TARGETS, ControlMeta, Entry, EntryKind, Outcome, StatusMeta, TargetMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.settings.assignment import TableAssignment

_logger = logging.getLogger(__name__)


def assignment_entries(state: FoldedLog, wanted: TableAssignment) -> Sequence[Entry]:
    """Returns the entry by which units belong to these targets from now on; none where the log has it so.

    Raises:
        LogRequestError: units would be left that no target of the settings applies.
    """
    noted = state.targets.assignment
    if noted == wanted:
        return ()
    if state.units and not (noted and wanted):
        left = len(state.units)
        raise LogRequestError(
            f"{counted(left)} of the log {are(left)} not resolved, dispatched for {_named(noted)}; the settings have"
            f" {_named(wanted)}: start with the former settings until kainite log show lists no such unit"
        )
    for name in set(noted.names) - set(wanted.names):
        if waiting := state.targets.counts()[name][0]:
            raise LogRequestError(
                f"the settings have no target.{name} any more, where {counted(waiting)} {are(waiting)} not applied:"
                " put it back until none is left that is neither applied nor discarded (kainite log show)"
            )
    if (moved := next(_moved(state, wanted), None)) is not None:
        uow, table, old, new = moved
        raise LogRequestError(
            f"the settings give table {table} to target.{new}, and unit {uow} is still to change it in target.{old}:"
            " put it back until such units are applied or discarded (kainite log show)"
        )
    journal = Journal(state, epoch_ms())
    journal.write(EntryKind.CONTROL, ControlMeta(TARGETS, key=wanted.as_text()))
    return journal.entries


def tell_change(before: TableAssignment, now: TableAssignment, partition: str) -> None:
    """Tells that an owner has noted other targets than the log had; it may be a daemon whose file differs."""
    level = logging.WARNING if before else logging.INFO  # else the application has had no targets by name yet
    event(_logger, level, "targets changed", partition=partition, before=_named(before), now=_named(now),
          tables_before=before.as_text(), tables_now=now.as_text())  # fmt: skip


def copied(state: FoldedLog, target: str, outcomes: tuple[Outcome, ...], through: int) -> Sequence[Entry]:
    """Returns the entries that copy outcomes into the log.

    Args:
        state: the folded log.
        target: one of several targets; empty for the only one.
        outcomes: the outcomes.
        through: the last id of its outcomes partition that they were read up to.
    """
    journal = Journal(state, epoch_ms())
    if target:
        _in_target(journal, TargetMeta(target, outcomes, through))
    else:
        journal.write(EntryKind.STATUS, StatusMeta(outcomes, through))
    return journal.entries


def write_decision(journal: Journal, request_id: str, outcome: Outcome, target: str) -> None:
    """Writes what a person has decided about a unit, or about its part in one target.

    Args:
        journal: gets the entries.
        request_id: the request that they answer.
        outcome: the decision.
        target: the target; empty for the whole unit.
    """
    if target:
        _in_target(journal, TargetMeta(target, (outcome,), None))
    journal.write(EntryKind.STATUS, StatusMeta(() if target else (outcome,), requests=(request_id,)))


def _in_target(journal: Journal, meta: TargetMeta) -> None:
    journal.write(EntryKind.TARGET, meta)
    state = journal.state
    meant = (outcome for outcome in state.targets.meant(meta.outcomes) if outcome.tid in state.units)
    # It says through, as all copies of outcomes do: only what people decide about whole units goes without.
    journal.write(EntryKind.STATUS, StatusMeta(tuple(meant), state.through))


def _moved(state: FoldedLog, wanted: TableAssignment) -> Iterator[tuple[str, str, str, str]]:
    """Yields units that are still to change a table which moves, with the table, its old target and its new one.

    A unit that was never tried is not among them: it gets its parts anew, when a retry judges it.
    """
    for tid, parts in state.targets.units.items():
        if (unit := state.units.get(tid)) is None or unit.fault is not None:
            continue
        for old, table in ((name, table) for name, part in parts.items() if not part.resolved for table in part.tables):
            if (new := next(iter(wanted.parts((table,))))) != old:
                yield unit.uow, table, old, new


def _named(assignment: TableAssignment) -> str:
    return f"the targets {', '.join(assignment.names)}" if assignment else "one target without a name"
