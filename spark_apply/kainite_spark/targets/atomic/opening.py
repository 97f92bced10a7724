"""Opens all targets of a settings file as one."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import cast

from kainite.settings import Settings
from kainite.settings.targets import assignment_of, each_target
from kainite.uow.catalogue.several import only
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.atomic.decisions import Decisions
from kainite_spark.targets.atomic.target import AtomicTarget
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.preparing import PreparingTarget


def open_atomic(
    configured: Settings, catalogue: Catalogue, levels: Mapping[str, int], decisions: Decisions
) -> AtomicTarget:
    """Returns the targets of an application with ``targetCommit=atomic``; opens no connection.

    Args:
        configured: the application's settings.
        catalogue: the tables of all targets.
        levels: precedence by table name.
        decisions: where transactions are decided.

    Raises:
        SettingsError, MissingExtraError, CatalogueError: as :func:`~kainite_spark.targets.opening.open_target`.
    """
    assignment = assignment_of(configured.of_targets)
    with contextlib.ExitStack() as opened:
        targets: dict[str, PreparingTarget] = {}
        for each in each_target(configured):
            own = only(catalogue, assignment, each.target_name)
            of_own = {table: level for table, level in levels.items() if table in own.tables}
            target = open_target(each.apply.target or "", own, of_own, each.apply, each.child.markers)
            opened.callback(target.close)
            # The settings name no kind that cannot prepare (kainite.settings.targets).
            targets[each.target_name] = cast(PreparingTarget, target)
        opened.pop_all()
    return AtomicTarget(targets, assignment, decisions)
