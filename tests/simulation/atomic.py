"""Two targets that commit together, as one process has them: each behind its own faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kainite_spark.targets.atomic.decisions import Decisions
from kainite_spark.targets.atomic.target import AtomicTarget
from simulation.second_target import ASSIGNMENT
from simulation.target import SimTarget
from support.preparing_sqlite import PreparingSqlite


def opened_together(targets: Mapping[str, Any]) -> AtomicTarget:
    """Returns targets as one, without faults; each is a SQLite target."""
    return AtomicTarget({name: PreparingSqlite(target) for name, target in targets.items()}, ASSIGNMENT)


def wrapped_together(target: AtomicTarget, wrap: Callable[[str, Any], SimTarget], store: Any) -> AtomicTarget:
    """Returns the targets as a process has them.

    Args:
        target: the targets, of whatever process.
        wrap: puts faults around one of them, by its name.
        store: the log as the process has it.
    """
    targets = {name: wrap(name, getattr(one, "target", one)) for name, one in target.targets.items()}
    return AtomicTarget(targets, ASSIGNMENT, Decisions(store, "0"))
