"""Opens all targets of a settings file as one that commits in all of them or in none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from kainite.settings import Settings
from kainite.settings.targets import assignment_of
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.atomic.decisions import Decisions
from kainite_spark.targets.atomic.target import AtomicTarget
from kainite_spark.targets.preparing import PreparingTarget
from kainite_spark.targets.several_opening import open_each


def open_atomic(
    configured: Settings, catalogue: Catalogue, levels: Mapping[str, int], decisions: Decisions
) -> AtomicTarget:
    """Returns the targets of an application with ``targetCommit=atomic``; opens no connection.

    Args:
        configured, catalogue, levels: as of :func:`~kainite_spark.targets.several_opening.open_each`, with its errors.
        decisions: where transactions are decided.
    """
    # The settings name no kind that cannot prepare (kainite.settings.targets).
    targets = cast(dict[str, PreparingTarget], open_each(configured, catalogue, levels))
    return AtomicTarget(targets, assignment_of(configured.of_targets), decisions)
