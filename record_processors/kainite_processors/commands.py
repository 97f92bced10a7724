"""The commands ``kainite-processor-…``: each loads its record processor, or says in a line which extra is missing."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Final

_LIBRARY: Final = "amazon_kclpy"


def aurora_dsql() -> None:
    """Runs ``kainite-processor-aurora-dsql``."""
    _run("aurora_dsql")


def aws_dms() -> None:
    """Runs ``kainite-processor-aws-dms``."""
    _run("aws_dms")


def debezium() -> None:
    """Runs ``kainite-processor-debezium``."""
    _run("debezium")


def postgresql() -> None:
    """Runs ``kainite-processor-postgresql``."""
    _run("postgresql_changes")


def _run(name: str) -> None:
    """Runs a record processor until the daemon closes its input; ends the process where it cannot be loaded."""
    try:
        module = import_module(f"kainite_processors.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != _LIBRARY:
            raise
        sys.exit(f"{Path(sys.argv[0]).name}: {_LIBRARY} is missing: pip install 'kainite[processors]'")
    module.main()
