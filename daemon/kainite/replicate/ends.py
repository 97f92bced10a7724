"""The two databases of a replica, and sessions with them.

Each of Spark's workers and each keeper of a snapshot imports this as it starts, so it imports little:
:mod:`kainite.replicate.configured_ends` reads the settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

import psycopg

from kainite.base.errors import KainiteError, SourceError, TargetUnavailableError
from kainite.base.redaction import redacted
from kainite.capture.postgresql.replication import SourceSlot
from kainite.targets.postgresql.connection import connect

_MARIADB: Final = "mariadb://"


class LoadEnds(Protocol):
    """What steps of a load need of a source and its target, whatever kind of database the source is."""

    @property
    def source_url(self) -> str:
        """Returns the source's URL."""

    @property
    def target(self) -> str:
        """Returns the target's URL, as libpq takes it; or that of a MariaDB database (:func:`is_mariadb`)."""

    @property
    def log_partition(self) -> str:
        """Returns the log's name in the target."""


@dataclass(frozen=True, slots=True)
class ReplicaEnds:
    """A source, its target, and the log between them.

    Attributes:
        source: the source's URL, slot and publication.
        target: the target's URL, as libpq takes it, or of MariaDB; ``repr`` leaves both out, since they may hold
            passwords.
        log_partition: the log's name in the target, as in :mod:`kainite_spark.targets.contract`.
        required: tables, as ``schema.table``, that the publication must have (``--table``).
    """

    source: SourceSlot = field(repr=False)
    target: str = field(repr=False)
    log_partition: str
    required: tuple[str, ...] = ()

    @property
    def source_url(self) -> str:
        return self.source.url


def is_mariadb(url: str) -> bool:
    """Tells whether a target's URL is that of a MariaDB database."""
    return url.startswith(_MARIADB)


@contextmanager
def both_sessions(ends: ReplicaEnds) -> Iterator[tuple[psycopg.Connection, psycopg.Connection]]:
    """Connects to source and target, in autocommit mode; raises SourceError for any error of either connection."""
    with (
        _told_as(SourceError, "the source or the target"),
        closing(_connected(ends.source.url, "the source")) as source,
        closing(_connected(ends.target, "the target")) as target,
    ):
        yield source, target


def _connected(url: str, whose: str) -> psycopg.Connection:
    """Returns a session; raises SourceError that says whose server does not answer."""
    with _told_as(SourceError, whose):
        return connect(url, "kainite replicate")


@contextmanager
def source_session(url: str, name: str = "kainite replicate") -> Iterator[psycopg.Connection]:
    """Connects to the source, in autocommit mode; raises SourceError for any error of the connection."""
    with _told_as(SourceError, "the source"), closing(connect(url, name)) as connection:
        yield connection


@contextmanager
def target_session(url: str, name: str = "kainite replicate") -> Iterator[psycopg.Connection]:
    """Connects to the target, in autocommit mode; raises TargetUnavailableError for any error of the connection."""
    with _told_as(TargetUnavailableError, "the target"), closing(connect(url, name)) as connection:
        yield connection


@contextmanager
def _told_as(kind: type[KainiteError], whose: str) -> Iterator[None]:
    """Raises an error of a connection as one of Kainite's, in one line that says whose it is."""
    try:
        yield
    except psycopg.Error as error:
        raise kind(f"{whose}: {_line(error)}") from None


def _line(error: psycopg.Error) -> str:
    return redacted(" ".join(str(error).split()))
