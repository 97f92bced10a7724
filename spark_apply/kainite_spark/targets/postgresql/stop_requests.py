"""The requests of a comparison in a PostgreSQL target."""

from __future__ import annotations

from functools import partial

import psycopg

from kainite.replicate.stop_ledger import POSTGRESQL
from kainite.targets.postgresql.address import libpq_url
from kainite.targets.postgresql.connection import connect
from kainite_spark.targets.postgresql.errors import about_own_tables
from kainite_spark.targets.sql_stop_requests import SqlStopRequests, StopDatabase


def postgres_stop_requests(url: str, log_partition: str) -> SqlStopRequests[psycopg.Connection]:
    """Returns the requests of a log in a target; opens no connection.

    Args:
        url: the target.
        log_partition: the log's name there.
    """
    opened = partial(connect, libpq_url(url), "kainite apply")
    return SqlStopRequests(StopDatabase(POSTGRESQL, opened, psycopg.Error, about_own_tables), log_partition)
