"""The process that Spark forks its Python workers from, with what a task needs loaded already.

Spark's own daemon loads nothing, so that each worker loaded Kainite, its drivers and PySpark for itself, and PySpark
out of a ZIP file, of which Python compiles each module anew. Here the workers share what was loaded once
(``spark.python.daemon.module``).

A process with threads must not fork, so nothing may be loaded here that starts some, as pandas and pyarrow do.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from kainite.base.errors import MissingExtraError
from kainite.base.garbage import collect_rarely, keep_what_is_loaded
from kainite.settings.kinds.target_kinds import TARGET_KINDS

_CLIENTS: Final = ("botocore.session", "botocore.client", "kainite.aws.foreign_replies", "kainite.aws.service_models")
"""What :mod:`kainite.aws.clients` loads when it makes a client."""

_LOADED: Final = (*_CLIENTS, "kainite.store.dynamodb", "kainite_spark.driver.runner", "pyspark.worker")


def main() -> None:
    """Loads what tasks need, then does what Spark's own daemon does."""
    sys.path[:] = without_zips(sys.path)
    load()
    collect_rarely()
    keep_what_is_loaded()
    from pyspark.daemon import manager

    manager()


def load() -> None:
    """Loads what tasks need, with all kinds of targets whose drivers are installed."""
    for module in _LOADED:
        importlib.import_module(module)
    for kind in TARGET_KINDS:
        with contextlib.suppress(ImportError, MissingExtraError):
            kind.part(kind.opener)


def without_zips(path: Sequence[str]) -> list[str]:
    """Returns the search path without the ZIP files that repeat what is installed.

    Spark puts the ZIP files of its own PySpark in front. They are left out where they belong to the PySpark that this
    Python has installed; a Spark of another place may be another release, whose files count.
    """
    folders = [entry for entry in path if not entry.endswith(".zip")]
    installed = PathFinder.find_spec("pyspark", folders)
    if installed is None or installed.origin is None:
        return list(path)
    home = Path(installed.origin).resolve().parent
    return [entry for entry in path if not entry.endswith(".zip") or home not in Path(entry).resolve().parents]


if __name__ == "__main__":
    main()
