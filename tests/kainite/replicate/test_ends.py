"""Sessions with a replica's two databases."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import source_session


def test_an_error_of_the_source_is_one_line(source: SourceSlot) -> None:
    with (
        pytest.raises(SourceError, match='the source: relation "none" does not exist'),
        source_session(source.url) as connection,
    ):
        connection.execute("SELECT * FROM none")


def test_a_keeper_and_a_worker_start_without_the_settings() -> None:
    """Tells that what starts in a load's way reads no settings: that took half of its start."""
    code = (
        "import kainite.replicate.keeper, kainite_spark.load.tasks, sys;"
        " print([name for name in ('click', 'kainite.settings') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
