"""Finds folders into which rows are written and that other users of the host may look into or change."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from kainite.settings.exposure.finding import Exposure, is_open_to_others, mode_of
from kainite.settings.settings import Settings

_DEFAULTS = "spark-defaults.conf"


def open_folders(settings: Settings, environment: Mapping[str, str]) -> Iterator[Exposure]:
    """Yields the folders that others may look into or change."""
    audit = settings.log.audit_trail
    if isinstance(audit, Path) and is_open_to_others(mode_of(audit)):
        what = "other users of this host may look into the audit trail"
        yield Exposure(what, f"auditTrail {audit}", f"chmod 700 {audit}")
    if settings.apply.target is None:
        return
    for folder in _spark_folders(environment):
        # Spark makes files that only their user may read. In a folder such as /tmp nobody else may replace them.
        mode = mode_of(folder)
        if is_open_to_others(mode) and not mode & stat.S_ISVTX:
            yield Exposure(
                "other users of this host may look into, or change, the folder of Spark's files, which hold rows",
                f"spark.local.dir {folder}",
                f"chmod 700 {folder}",
            )


def _spark_folders(environment: Mapping[str, str]) -> list[Path]:
    """Returns the folders that Spark writes to, from the environment or its own configuration; by default ``/tmp``."""
    given = environment.get("SPARK_LOCAL_DIRS") or environment.get("LOCAL_DIRS") or _configured(environment)
    return [Path(folder.strip()) for folder in (given or "/tmp").split(",") if folder.strip()]


def _configured(environment: Mapping[str, str]) -> str:
    """Returns ``spark.local.dir`` as Spark's file of defaults has it."""
    home = environment.get("SPARK_HOME")
    folder = environment.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else "")
    try:
        lines = (Path(folder) / _DEFAULTS).read_text(encoding="utf-8").splitlines() if folder else []
    except (OSError, UnicodeDecodeError):
        lines = []
    for line in lines:
        name, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if name == "spark.local.dir":
            return value.strip()
    return ""
