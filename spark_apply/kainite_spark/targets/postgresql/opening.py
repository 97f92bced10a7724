"""Opens a PostgreSQL database as a target."""

from __future__ import annotations

from kainite.base.errors import SettingsError
from kainite.settings.kinds.target_url import problem_of_database_url
from kainite.targets.postgresql.address import libpq_url
from kainite_spark.targets.opener import TargetOpener, TargetRequest
from kainite_spark.targets.postgresql.log_tables import taken_tables
from kainite_spark.targets.postgresql.readiness import look_at_database
from kainite_spark.targets.postgresql.stop_requests import postgres_stop_requests
from kainite_spark.targets.postgresql.target import PostgresTarget


def _open(request: TargetRequest) -> PostgresTarget:
    if problem := problem_of_database_url(request.url):
        raise SettingsError(f"the target's address {problem}")
    return PostgresTarget(libpq_url(request.url), request.schema(), request.policy())


OPENER = TargetOpener(_open, hooks=_open, look=look_at_database, stops=postgres_stop_requests, taken=taken_tables)
