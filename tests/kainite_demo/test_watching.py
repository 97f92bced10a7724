"""A database that goes away ends the watching with an error."""

from __future__ import annotations

from kainite_demo.reading import DatabaseReading
from kainite_demo.watching import Watching
from support.pgbench_databases import failure_of


def test_a_target_that_goes_away_is_reported(target: str) -> None:
    def drop(opened: DatabaseReading) -> None:
        opened.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with Watching(target, drop) as watching:
        assert failure_of(watching).startswith("the target cannot be read: ")
