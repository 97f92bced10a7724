"""The requests of a comparison in a PostgreSQL target, over a connection of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg

from kainite.replicate import stop_ledger
from kainite.replicate.stop_ledger import StopState, UnresolvedUnit
from kainite.targets.postgresql.connection import connect
from kainite_spark.targets.postgresql.driver_connection import DriverConnection
from kainite_spark.targets.postgresql.errors import about_own_tables
from kainite_spark.targets.stop_requests import StopRequest


class PostgresStopRequests:
    """Implements :class:`kainite_spark.targets.stop_requests.StopRequests`.

    Args:
        url: the target, as libpq takes it.
        log_partition: the log's name in the target.
    """

    def __init__(self, url: str, log_partition: str) -> None:
        self._url = url
        self._log = log_partition
        self._driver = DriverConnection()
        self._is_there = False

    def look(self) -> StopRequest | None:
        with self._connection() as connection:
            if not self._is_there:
                found = connection.execute(stop_ledger.IS_THERE).fetchone()
                self._is_there = found is not None and bool(found[0])
            row = connection.execute(stop_ledger.LOOK, (self._log,)).fetchone() if self._is_there else None
        if row is None:
            return None
        number, state, *more = row
        return StopRequest(number, StopState(state), *more)

    def attend(self, number: int, generation: int) -> bool:
        return self._changed(stop_ledger.ATTEND, generation, self._log, number)

    def passed(self, number: int, generation: int) -> None:
        self._changed(stop_ledger.PASSED, self._log, number, generation)

    def stopped(self, number: int, generation: int, micro_batch: int, units: tuple[UnresolvedUnit, ...]) -> bool:
        listed = stop_ledger.encoded(units)
        return self._changed(stop_ledger.STOPPED, micro_batch, listed, self._log, number, generation)

    def go_on(self, number: int, generation: int, held_ms: int) -> None:
        self._changed(stop_ledger.GO_ON, held_ms, self._log, number, generation)

    def close(self) -> None:
        self._driver.close()

    def _changed(self, statement: LiteralString, *values: Any) -> bool:
        with self._connection() as connection:
            return connection.execute(statement, values).rowcount == 1

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection]:
        """Gives the connection, in autocommit mode."""
        try:
            with self._driver.transaction(lambda: connect(self._url, "kainite apply")) as connection:
                yield connection
        except psycopg.Error as error:
            raise about_own_tables(error) from error
