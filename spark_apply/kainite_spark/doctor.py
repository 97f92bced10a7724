"""What only the apply job needs, for ``kainite doctor``: triggers, rights and other logs of the target, Java, pyspark.

``kainite.doctor.asking`` imports this module by its name, so that a shard host need not have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec

from kainite.base.errors import SparkUnavailableError
from kainite.doctor.finding import DoctorFinding, warned, well, wrong
from kainite.replicate.findings import some_names
from kainite.settings import MarkersSettings, Settings, TargetTriggers
from kainite.uow.catalogue.several import catalogue_of
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.cli import ledger_of
from kainite_spark.driver.session import require_java
from kainite_spark.targets.hooks_report import HooksReport, look, target_url
from kainite_spark.targets.opener import TargetRequest
from kainite_spark.targets.opening import logs_in, look_at_kind

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
    yield from other_logs(settings, logs_in(url))


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


def other_logs(settings: Settings, present: Iterable[str]) -> Iterator[DoctorFinding]:
    """Yields which logs beside that of the settings have been applied to the target.

    Nothing orders units of two logs (docs/scale.md, *Several log partitions*), and the target cannot tell whether they
    touch the same rows. A file that names the tables of its log (``target.NAME.tables``) has seen to it.

    Args:
        settings: those of the target that is looked at.
        present: the names of the logs in the target; one of several targets has the log's name with its own behind it.
    """
    own = settings.log.name
    others = sorted({name for name in present if name != own and not name.startswith(f"{own}/")})
    if not others:
        return
    told = f"other logs are applied to it too, or were: {some_names(others)}"
    tables = dict(settings.log.targets.patterns).get(settings.target_name, ())
    if tables:
        yield well(_AREA, f"{told}; {ledger_of(settings)} keeps to its tables: {', '.join(tables)}")
    else:
        told += f"; where their units and those of {ledger_of(settings)} touch one row, nothing orders them"
        yield warned(_AREA, told, "name the tables of each log in its own file: target.NAME and target.NAME.tables")
