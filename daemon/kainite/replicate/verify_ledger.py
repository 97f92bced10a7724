"""The comparison's side of the ledger by which it makes the apply job stop; and its latest result.

:mod:`~kainite.replicate.stop_ledger` has the states, the invariants, and what a crash leaves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import msgspec
import psycopg

from kainite.base.errors import KainiteError, TargetError
from kainite.replicate.mariadb_stop_ledger import MARIADB
from kainite.replicate.stop_ledger import POSTGRESQL, StopState, StopStatements

BEAT_S: Final = 1.0
"""Seconds between two signs of life."""

LOOK_S: Final = 0.005
"""Seconds between two looks for the apply job's answer: as long as it stands still, units wait."""

GOOD: Final = ("equal", "known")
"""The verdicts with which a comparison passes."""


@dataclass(frozen=True, slots=True)
class VerifyOutcome:
    """The latest result of a comparison, in short.

    Attributes:
        ended_at: when it ended, in ISO 8601; empty where none has come to a result.
        position: the point of the source as of which both sides were compared.
        verdict: as :attr:`kainite.replicate.verify_report.VerifyReport.verdict` has it.
        tables, rows: how many of them were compared.
        different, known, unsure: how many rows differ.
        left_out: how many tables could not be compared.
        seconds: how long it took.
        good_at: when the latest comparison ended whose result was good, in ISO 8601; None where none was.
        every: seconds between two comparisons where they are repeated (``--every``); None where they are not.
        trouble: why the latest try came to no result; None where it came to one.
    """

    ended_at: str
    position: str
    verdict: str
    tables: int
    rows: int
    different: int
    known: int
    unsure: int
    left_out: int
    seconds: float
    good_at: str | None = None
    every: float | None = None
    trouble: str | None = None

    @property
    def passed(self) -> bool:
        """Tells whether every row was equal, or differed by a unit that is known not to be applied."""
        return self.verdict in GOOD


NO_OUTCOME: Final = VerifyOutcome("", "", "", 0, 0, 0, 0, 0, 0, 0.0)
"""Stands for the result where there is none yet."""


class VerifySession(Protocol):
    """A session with a target, in autocommit mode: of psycopg or of PyMySQL."""

    def cursor(self) -> AbstractContextManager[Any]:
        """Returns what executes statements."""


@dataclass(slots=True)
class VerifyLedger:
    """The ledger of one log, for the one comparison that holds it.

    Attributes:
        connection: a session with the target, in autocommit mode, of the comparison alone.
        log_partition: the log's name in the target.
        stop: set to end every wait.
        request: the number of the latest request.
    """

    connection: VerifySession
    log_partition: str
    stop: threading.Event = field(default_factory=threading.Event)
    request: int = 0

    def begin(self) -> None:
        """Makes the table where it is missing; raises TargetError where another comparison runs."""
        if not self._one(self._sql.one_at_a_time, self.log_partition)[0]:
            raise TargetError(f"another kainite verify of {self.log_partition} runs: wait, or end it first")
        self._changed(self._sql.create)

    def ask(self, floor: int | None = None) -> None:
        """Asks the apply job to stop.

        Args:
            floor: a place before the point, from which on it begins no unit until it knows the point; None for none.
        """
        self._changed(self._sql.ask, self.log_partition, floor)
        self.request = int(self._one(self._sql.asked, self.log_partition)[0])

    def set_position(self, place: int) -> bool:
        """Tells the point; returns whether the apply job still attends."""
        return self._changed(self._sql.set_position, place, self.log_partition, self.request) == 1

    def awaits(self, state: StopState, until: float, look: Callable[[], None]) -> bool:
        """Waits for a state; returns False where the request came to nothing, and must be made anew.

        Args:
            state: the state.
            until: when to give up, by ``time.monotonic``.
            look: called meanwhile; its errors end the waiting.

        Raises:
            TargetError: the time is over, or ``stop`` was set.
        """
        while True:
            row = first_row(self.connection, self._sql.await_, self.log_partition, self.request)
            if row is None:
                return False
            found, attends = StopState(row[0]), bool(row[1])
            if found is state:
                return True
            if found in (StopState.PASSED, StopState.OVER) or (found is StopState.ATTENDED and not attends):
                return False
            if self.stop.is_set() or time.monotonic() >= until:
                raise TargetError(_why_given_up(found, stopped=self.stop.is_set()))
            look()
            self.stop.wait(LOOK_S)

    def end(self) -> None:
        """Lets the apply job go on, and drops the request."""
        self._changed(self._sql.end, self.log_partition, self.request)

    def held_ms(self) -> int | None:
        """Returns for how many milliseconds the apply job stood still; None while it has not told."""
        found = self._one(self._sql.held, self.log_partition, self.request)[0]
        return None if found is None else int(found)

    def note(self, outcome: VerifyOutcome) -> None:
        """Keeps the result of a comparison, with what is known of those before it."""
        before = latest_outcome(self.connection, self.log_partition) or NO_OUTCOME
        self._keep(
            replace(
                outcome,
                good_at=outcome.ended_at if outcome.passed else before.good_at,
                every=before.every,
            )
        )

    def note_repeated(self, every: float | None, trouble: str | None = None) -> None:
        """Keeps how often comparisons are made, and why the latest one came to no result.

        Args:
            every: seconds; None where they are not repeated any more.
            trouble: the reason; None to keep none.
        """
        self._changed(self._sql.create)
        before = latest_outcome(self.connection, self.log_partition) or NO_OUTCOME
        self._keep(replace(before, every=every, trouble=trouble))

    def _keep(self, outcome: VerifyOutcome) -> None:
        self._changed(self._sql.note_result, msgspec.json.encode(outcome).decode(), self.log_partition)

    @contextmanager
    def beating(self, opened: Callable[[], AbstractContextManager[VerifySession]]) -> Iterator[None]:
        """Gives signs of life while entered.

        Args:
            opened: opens a session with the target, for them alone.
        """
        over = threading.Event()
        thread = threading.Thread(target=self._beat, args=(opened, over), name="verify-beat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _beat(self, opened: Callable[[], AbstractContextManager[VerifySession]], over: threading.Event) -> None:
        # Without signs of life the apply job drops the request, and the comparison asks again.
        with suppress(KainiteError), opened() as connection:
            while not over.wait(BEAT_S):
                changed_rows(connection, self._sql.beat, self.log_partition, self.request)

    @property
    def _sql(self) -> StopStatements:
        return statements_for(self.connection)

    def _changed(self, statement: str, *values: object) -> int:
        return changed_rows(self.connection, statement, *values)

    def _one(self, query: str, *values: object) -> Any:
        row = first_row(self.connection, query, *values)
        assert row is not None, "the statement returns a row"
        return row


def statements_for(connection: VerifySession) -> StopStatements:
    """Returns the statements that a session's server takes."""
    return POSTGRESQL if isinstance(connection, psycopg.Connection) else MARIADB


def first_row(connection: VerifySession, query: str, *values: object) -> Any:
    """Returns the first row of a query; None where there is none. Raises the driver's errors."""
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetchone()


def changed_rows(connection: VerifySession, statement: str, *values: object) -> int:
    """Returns how many rows a statement has met. Raises the driver's errors."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)


def latest_outcome(connection: VerifySession, log_partition: str) -> VerifyOutcome | None:
    """Returns the latest result of a comparison of a target; None where there is none."""
    statements = statements_for(connection)
    found = first_row(connection, statements.is_there)
    if found is None or not found[0]:
        return None
    row = first_row(connection, statements.result, log_partition)
    return None if row is None or row[0] is None else msgspec.json.decode(row[0], type=VerifyOutcome)


def _why_given_up(state: StopState, *, stopped: bool) -> str:
    if stopped:
        return "the comparison was stopped before it had begun"
    if state is StopState.ASKED:
        return "no apply job of this log has answered: kainite apply must run, and not be paused"
    return (
        "the apply job has not come to the point in time: it may be far behind, or wait for something (kainite status);"
        " try again later, or with a longer --wait"
    )
