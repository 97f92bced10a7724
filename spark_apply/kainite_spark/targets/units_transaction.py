"""Runs one transaction of a task's session: what an error of the database's driver means, in it and at its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar


class Transactional(Protocol):
    """A connection of a database's driver."""

    def commit(self) -> None:
        """Commits the transaction."""

    def rollback(self) -> None:
        """Rolls the transaction back."""


C = TypeVar("C", bound=Transactional)
E = TypeVar("E", bound=Exception)


@contextmanager
def units_transaction(
    connection: C,
    close: Callable[[], None],
    errors: type[E],
    inside: Callable[[E], Exception],
    at_commit: Callable[[E], Exception],
) -> Iterator[C]:
    """Gives the connection, then commits; rolls back after any error.

    Args:
        connection: the connection, in no transaction.
        close: closes a connection that cannot roll back, which has the same effect.
        errors: the errors of the driver.
        inside: returns what such an error means while entered.
        at_commit: returns what it means at the commit.
    """
    try:
        try:
            yield connection
        except errors as error:
            raise inside(error) from error
        try:
            connection.commit()
        except errors as error:
            raise at_commit(error) from error
    except BaseException:
        try:
            connection.rollback()
        except Exception:  # whatever a driver makes of a connection that stands in the middle of an answer
            close()
        raise
