"""Opens a MariaDB or MySQL database as a target."""

from __future__ import annotations

from kainite.base.errors import SettingsError
from kainite.targets.mariadb.address import server_of
from kainite_spark.targets.mariadb.log_tables import taken_tables
from kainite_spark.targets.mariadb.readiness import look_at_database
from kainite_spark.targets.mariadb.stop_requests import mariadb_stop_requests
from kainite_spark.targets.mariadb.target import MariadbTarget
from kainite_spark.targets.opener import TargetOpener, TargetRequest


def _open(request: TargetRequest) -> MariadbTarget:
    try:
        server_of(request.url)
    except ValueError as error:
        raise SettingsError(f"the target's address {error}") from None
    return MariadbTarget(request.url, request.schema(), request.policy())


OPENER = TargetOpener(_open, hooks=_open, look=look_at_database, stops=mariadb_stop_requests, taken=taken_tables)
