"""Triggers and rules of a target, both called *hooks*: what fires when units are applied, and what may fire. Pure.

A source's triggers have fired already, and what they changed comes as deltas of its own. So a hook of the target does
twice what was done once, or changes rows that nobody told of. A target that is a copy of its source's schema has them
all. :class:`HookPolicy` says which may fire; all others are refused at the start, and by the sessions of tasks as soon
as they see them.

Nobody can know what a function writes or reads. So a change that may fire a hook keeps its place among all other
changes of a transaction (:mod:`kainite_spark.targets.statements.hooked_runs`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kainite.base.errors import CatalogueError
from kainite.base.logs import event
from kainite.settings import ApplySettings, TargetTriggers
from kainite.uow.catalogue.tables import Catalogue

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class Hook:
    """A trigger or a rule.

    Attributes:
        table: as deltas call it; with its schema where it is not in the catalogue.
        name: its own name.
        definition: the statement that makes it: timing, events and function.
        handed_over: whether its table was handed over by a cut-over: others write there, and need it.
    """

    table: str
    name: str
    definition: str
    handed_over: bool = False

    def __str__(self) -> str:
        return f"{self.table}: {' '.join(self.definition.split())}"


@dataclass(frozen=True, slots=True)
class FoundHooks:
    """The hooks of a target.

    Attributes:
        firing: those that fire when units are applied, on the catalogue's tables or on what their foreign keys' actions
            reach, in order.
        hooked: the tables of the catalogue of which some change fires a hook, there or where a foreign key acts.
        deferrable: whether some of them may wait for the commit.
        off: those that Kainite has switched off.
        why_refused: why the apply job does not start with them, as its start says it; None if it does. What the start
            switches off is no reason.
    """

    firing: tuple[Hook, ...] = ()
    hooked: frozenset[str] = frozenset()
    deferrable: bool = False
    off: tuple[Hook, ...] = ()
    why_refused: str | None = None


@dataclass(frozen=True, slots=True)
class HookPolicy:
    """The hooks that may fire.

    Attributes:
        triggers: what becomes of the others.
        meant: the tables whose hooks fire in any case, as deltas call them.
    """

    triggers: TargetTriggers = TargetTriggers.REFUSE
    meant: frozenset[str] = frozenset()

    @classmethod
    def of(cls, apply: ApplySettings, catalogue: Catalogue | None) -> HookPolicy:
        """Returns the policy of the settings, in which a table may be called with the default schema or without.

        Raises:
            CatalogueError: a table of the settings does not exist.
        """
        known = catalogue or Catalogue({})
        found = {name: known.find(name) for name in apply.trigger_tables}
        for name in (name for name, table in found.items() if table is None and catalogue is not None):
            raise CatalogueError(f"targetTriggerTables: the target has no table {name}")
        return cls(apply.triggers, frozenset(table.name for table in found.values() if table is not None))

    def unwanted(self, firing: Iterable[Hook]) -> list[Hook]:
        """Returns the hooks that may not fire, on whatever units may change."""
        return [hook for hook in self._unmeant(firing) if not hook.handed_over]

    def unwanted_when_changed(self, firing: Iterable[Hook]) -> list[Hook]:
        """Returns the hooks that fire for others, and may not when units change what they stand on."""
        return [hook for hook in self._unmeant(firing) if hook.handed_over]

    def _unmeant(self, firing: Iterable[Hook]) -> list[Hook]:
        fires = self.triggers is TargetTriggers.FIRE
        return [hook for hook in firing if not (fires or hook.table in self.meant)]


class HookSwitch(Protocol):
    """A target whose hooks can be looked at, and switched on again."""

    def hooks(self) -> FoundHooks:
        """Returns the target's hooks as they are now."""

    def switch_on(self) -> Sequence[Hook]:
        """Switches on what Kainite has switched off; returns it. Safe to be called again."""

    def close(self) -> None:
        """Closes the connection, if there is one."""


def leading_to(hooked: Iterable[str], catalogue: Catalogue) -> frozenset[str]:
    """Returns the tables of which a change reaches one of ``hooked``, there or by foreign keys with actions."""
    above = {name: {key.parent for key in table.foreign_keys if key.acts} for name, table in catalogue.tables.items()}
    found = set(hooked)
    todo = list(found)
    while todo:
        parents = above.get(todo.pop(), set()) & catalogue.tables.keys() - found
        found |= parents
        todo.extend(parents)
    return frozenset(found)


def refusal(unwanted: Collection[Hook]) -> str:
    """Returns what is said of hooks that may not fire."""
    listed = "; ".join(map(str, unwanted))
    return (
        f"the target has {len(unwanted)} triggers or rules that fire when units are applied, although the source has "
        "told already what its own did: "
        f"{listed}. Set targetTriggers=off to have them switched off in the target, name the tables where they are "
        "meant in targetTriggerTables, or set targetTriggers=fire"
    )


def refusal_of_change(table: str, unwanted: Collection[Hook]) -> str:
    """Returns what is said of a change of a table that a cut-over has handed over, or that leads to one."""
    listed = "; ".join(map(str, unwanted))
    return (
        f"a unit changes {table}, and triggers or rules fire of which a cut-over has handed the table over to others:"
        f" {listed}. Disable them in the target where nobody else writes there, name the tables in targetTriggerTables,"
        " or set targetTriggers=fire"
    )


def tell_firing(firing: Iterable[Hook]) -> None:
    """Logs each hook that will fire when units are applied."""
    for hook in firing:
        event(_LOG, logging.WARNING, "trigger of the target fires", table=hook.table, definition=hook.definition)


def tell_switched_off(off: Iterable[Hook]) -> None:
    """Logs each hook that was switched off."""
    for hook in off:
        event(_LOG, logging.WARNING, "trigger of the target switched off", table=hook.table,
              definition=hook.definition, back="kainite apply --triggers-on")  # fmt: skip
