"""What only the apply job needs, for ``kainite doctor``: triggers, rights and other logs of the target, Java, pyspark.

``kainite.doctor.asking`` imports this module by its name, so that a shard host need not have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec

from kainite.base.errors import CatalogueError, SparkUnavailableError
from kainite.doctor.finding import DoctorFinding, warned, well, wrong
from kainite.replicate.findings import some_names
from kainite.settings import MarkersSettings, Settings, TargetTriggers
from kainite.uow.catalogue.several import catalogue_of
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.configured_target import tables_taken
from kainite_spark.driver.session import require_java
from kainite_spark.targets.hooks_report import HooksReport, look, target_url
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.opener import TargetRequest
from kainite_spark.targets.opening import look_at_kind, taken_in

_AREA = "target"


def look_at_target(settings: Settings) -> Iterator[DoctorFinding]:
    """Yields whether the apply job may start with the target's triggers, and what its role may do.

    Raises:
        KainiteError: the target does not answer, or its tables cannot be served.
    """
    url, apply = target_url(settings), settings.apply
    catalogue = catalogue_of(settings) or Catalogue({})
    yield from look_at_kind(TargetRequest(url, catalogue, None, apply, MarkersSettings()))
    yield from _triggers(look(settings), apply.triggers)
    yield from other_logs(tables_taken(settings, catalogue), taken_in(url))


def look_at_spark(settings: Settings) -> Iterator[DoctorFinding]:
    """Yields whether Spark can start here."""
    for package in ("pyspark", "pyarrow", "pandas"):
        if find_spec(package) is None:
            yield wrong("spark", f"{package} is not installed", "pip install 'kainite[spark]'")
            return
    try:
        require_java()
    except SparkUnavailableError as error:
        yield wrong("spark", str(error), "install Java 17 or newer, or set JAVA_HOME")
        return
    yield well("spark", f"pyspark and Java are there, for applyMaster {settings.apply.master}")


def _triggers(report: HooksReport, policy: TargetTriggers) -> Iterator[DoctorFinding]:
    for hook in report.firing:
        if hook not in report.refused:
            yield warned(_AREA, f"fires when units are applied: {hook}")
        elif policy is TargetTriggers.OFF:
            yield warned(_AREA, f"the apply job switches it off: {hook}", "kainite apply --triggers-on, at a cut-over")
        else:
            yield wrong(_AREA, f"fires and is refused: {hook}",
                        f"ALTER TABLE {hook.table} DISABLE TRIGGER {hook.name}; or targetTriggers = off; or, where it"
                        f" is meant, targetTriggerTables = {hook.table}")  # fmt: skip
    if not report.firing:
        yield well(_AREA, "no trigger or rule fires when units are applied")


def other_logs(taking: LogTables, taken: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yields which logs beside that of the settings have tables of the target, and whether they have one of its own.

    Args:
        taking: the tables that the log of the settings takes.
        taken: the log of each table that a log has taken.
    """
    others = {table: log for table, log in taken.items() if log != taking.log}
    if not others:
        return
    try:
        taking.check({table: others[table] for table in taking.full_names if table in others})
    except CatalogueError as error:
        yield wrong(_AREA, str(error), "targetTables, or targetSharedTables")
    else:
        told = f"other logs write to it too: {some_names(sorted(set(others.values())))}"
        yield well(_AREA, f"{told}; none of them has a table of {taking.log}")
