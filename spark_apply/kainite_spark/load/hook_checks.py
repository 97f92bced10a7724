"""Looks whether the target's triggers and rules may fire when rows are copied and units applied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from kainite.base.errors import CatalogueError
from kainite.capture.mysql.snapshot_tables import backticked
from kainite.replicate.ends import LoadEnds, is_mariadb
from kainite.replicate.findings import CheckFinding, fine, warning, wrong
from kainite.replicate.preparation import target_catalogue
from kainite.settings import Settings, TargetTriggers
from kainite.uow.catalogue.several import own_tables
from kainite_spark.targets.hooks import HookPolicy
from kainite_spark.targets.opening import open_hooks

_ABOUT = "triggers"


def look_at_hooks(configured: Settings, ends: LoadEnds) -> Iterator[CheckFinding]:
    """Yields what fires in the target: the source's triggers have fired already.

    Raises:
        CatalogueError: ``targetTriggerTables`` names a table that is not there.
    """
    catalogue = own_tables(configured, target_catalogue(configured, ends))
    opened = open_hooks(ends.target, catalogue, configured.apply)
    assert opened is not None, "both kinds have triggers to look at"
    try:
        with closing(opened):
            firing = opened.hooks().firing
    except CatalogueError as error:  # MariaDB's role does not see them
        yield wrong(_ABOUT, str(error), "see there")
        return
    policy = HookPolicy.of(configured.apply, catalogue)
    unwanted = policy.unwanted(firing)
    for hook in firing:
        if hook not in unwanted:
            yield warning(_ABOUT, f"{hook} fires, as the settings say")
        elif is_mariadb(ends.target):
            yield wrong(_ABOUT, f"{hook} would do again what the source has done; MariaDB cannot switch it off",
                        f"DROP TRIGGER {backticked(hook.name)}; to make it again when the target is written by others: "
                        f"{hook.definition}")  # fmt: skip
        elif configured.apply.triggers is TargetTriggers.OFF:
            yield fine(_ABOUT, f"{hook} is switched off when the load begins")
        else:
            yield wrong(_ABOUT, f"{hook} would do again what the source has done", "targetTriggers = off")
