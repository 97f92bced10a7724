"""The requests of a comparison in a MariaDB target."""

from __future__ import annotations

from functools import partial

import pymysql

from kainite.replicate.mariadb_stop_ledger import MARIADB
from kainite.targets.mariadb.connection import connect
from kainite_spark.targets.mariadb.errors import about_own_tables
from kainite_spark.targets.sql_stop_requests import SqlStopRequests, StopDatabase


def mariadb_stop_requests(url: str, log_partition: str) -> SqlStopRequests[pymysql.connections.Connection]:
    """Returns the requests of a log in a target; opens no connection.

    Args:
        url: the target.
        log_partition: the log's name there.
    """
    database = StopDatabase(MARIADB, partial(connect, url), pymysql.Error, about_own_tables)
    return SqlStopRequests(database, log_partition)
