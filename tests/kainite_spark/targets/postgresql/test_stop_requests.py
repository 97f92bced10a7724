"""The requests of a comparison are found whichever way a PostgreSQL target's address is written."""

from __future__ import annotations

from kainite_spark.targets.postgresql.stop_requests import postgres_stop_requests


def test_an_address_is_read_as_the_target_reads_it(postgres: str) -> None:
    requests = postgres_stop_requests(postgres.replace("postgresql://", "postgres://"), "log/0")
    assert requests.look() is None
    requests.close()
