"""Sends many statements in one packet, and reads an answer of each: one round trip instead of many.

The server executes them one after the other, and stops at the first one that fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pymysql


@dataclass(frozen=True, slots=True)
class StatementAnswer:
    """What the server answered to a statement: how many rows it met, and the rows that it returned."""

    met: int
    rows: Sequence[tuple[Any, ...]]


class FailedStatementError(Exception):
    """A statement of a packet failed.

    Attributes:
        error: what PyMySQL raised.
        answers: those of the statements before it.
    """

    def __init__(self, error: pymysql.Error, answers: Sequence[StatementAnswer]) -> None:
        super().__init__(str(error))
        self.error = error
        self.answers = answers


def send(connection: pymysql.connections.Connection, statements: Sequence[str]) -> list[StatementAnswer]:
    """Executes statements; returns an answer of each.

    Raises:
        FailedStatementError: one failed; those behind it were not executed.
    """
    answers: list[StatementAnswer] = []
    try:
        with connection.cursor() as cursor:
            cursor.execute(";\n".join(statements))
            answers.append(StatementAnswer(cursor.rowcount, cursor.fetchall()))
            while cursor.nextset():
                answers.append(StatementAnswer(cursor.rowcount, cursor.fetchall()))
    except pymysql.Error as error:
        raise FailedStatementError(error, answers) from error
    return answers
