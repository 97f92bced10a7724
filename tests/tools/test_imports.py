"""A shard host loads neither Spark nor a database driver: an interpreter of its own tells what was imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pyspark", "pandas", "pyarrow", "psycopg", "pymysql", "moto")

PROGRAM = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.parametrize("module", ["kainite.worker.supervisor", "kainite.cli.main"])
def test_a_shard_host_loads_neither_spark_nor_a_database_driver(module: str) -> None:
    loaded = imported_by(module)

    assert "kainite" in loaded
    assert loaded.isdisjoint(HEAVY)


def imported_by(module: str) -> set[str]:
    """Returns the top-level packages that a fresh interpreter holds after it has imported ``module``."""
    # -I: neither this test's path nor the user's site-packages take part.
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM, module], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())
