"""Opens each target of a settings file that has several."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from kainite.settings import Settings
from kainite.settings.targets import assignment_of, each_target
from kainite.uow.catalogue.several import only
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.contract import Target
from kainite_spark.targets.opening import open_target


def open_each(configured: Settings, catalogue: Catalogue, levels: Mapping[str, int]) -> dict[str, Target]:
    """Returns the targets of an application by name; opens no connection.

    Args:
        configured: the application's settings.
        catalogue: the tables of all targets.
        levels: precedence by table name.

    Raises:
        SettingsError, MissingExtraError, CatalogueError: as :func:`~kainite_spark.targets.opening.open_target`.
    """
    assignment = assignment_of(configured.of_targets)
    targets: dict[str, Target] = {}
    with contextlib.ExitStack() as opened:
        for each in each_target(configured):
            own = only(catalogue, assignment, each.target_name)
            of_own = {table: level for table, level in levels.items() if table in own.tables}
            target = open_target(each.apply.target or "", own, of_own, each.apply, each.child.markers)
            opened.callback(target.close)
            targets[each.target_name] = target
        opened.pop_all()
    return targets
