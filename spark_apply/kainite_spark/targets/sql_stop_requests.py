"""The requests of a comparison in a target that is a database, over a connection of their own, in autocommit mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

from kainite.base.errors import TargetError
from kainite.replicate.stop_ledger import StopState, StopStatements, UnresolvedUnit, encoded
from kainite_spark.targets.driver_connection import C, DriverConnection
from kainite_spark.targets.stop_requests import StopRequest


@dataclass(frozen=True)  # Python 3.11 makes no object of a generic class by its alias where that is frozen with slots
class StopDatabase(Generic[C]):
    """A kind of database that has requests.

    Attributes:
        statements: in its SQL.
        connect: opens a connection in autocommit mode.
        failure: the class of its driver's errors.
        meaning: returns what such an error about Kainite's own tables means.
    """

    statements: StopStatements
    connect: Callable[[], C]
    failure: type[Exception]
    meaning: Callable[[Any], TargetError]


@dataclass
class SqlStopRequests(Generic[C]):
    """Implements :class:`kainite_spark.targets.stop_requests.StopRequests`.

    Attributes:
        database: where the requests are.
        log_partition: the log's name there.
    """

    database: StopDatabase[C]
    log_partition: str
    _driver: DriverConnection[C] = field(default_factory=DriverConnection)
    _is_there: bool = False

    def look(self) -> StopRequest | None:
        statements = self.database.statements
        if not self._is_there:
            [(found,)] = self._executed(statements.is_there)[1]
            self._is_there = bool(found)
        rows = self._executed(statements.look, self.log_partition)[1] if self._is_there else ()
        for number, state, floor, position, generation, beat in rows:
            return StopRequest(number, StopState(state), floor, position, generation, beat)
        return None

    def attend(self, number: int, generation: int) -> bool:
        return self._changed(self.database.statements.attend, generation, self.log_partition, number)

    def passed(self, number: int, generation: int) -> None:
        self._changed(self.database.statements.passed, self.log_partition, number, generation)

    def stopped(self, number: int, generation: int, micro_batch: int, units: tuple[UnresolvedUnit, ...]) -> bool:
        values = (micro_batch, encoded(units), self.log_partition, number, generation)
        return self._changed(self.database.statements.stopped, *values)

    def go_on(self, number: int, generation: int, held_ms: int) -> None:
        self._changed(self.database.statements.go_on, held_ms, self.log_partition, number, generation)

    def close(self) -> None:
        self._driver.close()

    def _changed(self, statement: str, *values: object) -> bool:
        return self._executed(statement, *values)[0] == 1

    def _executed(self, statement: str, *values: object) -> tuple[int, list[Any]]:
        """Returns how many rows a statement has met, and those that it gives."""
        try:
            with self._driver.transaction(self.database.connect) as connection:
                kept: Any = connection
                with kept.cursor() as cursor:
                    cursor.execute(statement, values)
                    return cursor.rowcount, list(cursor.fetchall()) if cursor.description else []
        except self.database.failure as error:
            raise self.database.meaning(error) from error
