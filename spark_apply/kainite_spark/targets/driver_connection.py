"""The driver's connection to a database, kept between its short transactions: each micro-batch begins with one.

To open a connection takes the server a process or a thread, and several round trips: more than the transaction itself.
A connection that has rested is opened anew, since what lies between may have cut it meanwhile without a word. After any
error it is closed, which rolls back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeVar

RESTED_S: Final = 5.0
"""Seconds after which a connection that was not used is opened anew."""


class KeptConnection(Protocol):
    """A connection of a database's driver."""

    def commit(self) -> None:
        """Commits what has begun; does nothing in autocommit mode."""

    def close(self) -> None:
        """Closes it, which rolls back."""


C = TypeVar("C", bound=KeptConnection)


class DriverConnection(Generic[C]):
    """Keeps a connection. Sent to another process, it is one that has none yet.

    Args:
        clock: seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._connection: C | None = None
        self._used = 0.0

    def __reduce__(self) -> tuple[type[DriverConnection[C]], tuple[()]]:
        return DriverConnection, ()

    def __del__(self) -> None:
        self.close()

    @contextmanager
    def transaction(self, connect: Callable[[], C]) -> Iterator[C]:
        """Runs a transaction.

        Args:
            connect: opens a connection.
        """
        if self._clock() - self._used > RESTED_S:
            self.close()
        try:
            if self._connection is None:
                self._connection = connect()
            yield self._connection
            self._connection.commit()
        except BaseException:
            self.close()
            raise
        self._used = self._clock()

    def close(self) -> None:
        """Closes the connection. May be called again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
