"""Opens replication connections to a source, and executes commands on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import pq

from kainite.base.errors import SourceError
from kainite.base.redaction import learn, redacted, secrets_in_url
from kainite.capture.postgresql.source_reach import SESSION_NAME, reached_by
from kainite.targets.postgresql.text_forms import as_options

# PostgreSQL sends values as this session would print them; with an empty path, names of tables with their schemas.
_OPTIONS = f"{as_options()} -c search_path="
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


def connect(url: str) -> pq.abc.PGconn:
    """Opens a replication connection to a database, on which ordinary SQL may be sent too.

    Raises:
        SourceError: the URL is wrong, or the server does not let the role in.
    """
    learn(secrets_in_url(url))
    try:
        text = reached_by(
            url, replication="database", client_encoding="UTF8", options=_OPTIONS, application_name=SESSION_NAME
        )
    except psycopg.Error as error:
        raise SourceError(f"the source's connection URL is wrong: {one_line(str(error).encode())}") from None
    connection = pq.PGconn.connect(text.encode())
    if connection.status != pq.ConnStatus.OK:
        message = one_line(connection.error_message)
        connection.finish()
        raise SourceError(f"cannot connect to the source server: {message}")
    if connection.parameter_status(b"server_encoding") == b"SQL_ASCII":
        # The server would end the stream at the first text that is not UTF-8, and so at each start.
        execute(connection, "SELECT set_config('client_encoding', 'SQL_ASCII', false)")
    return connection


def execute(connection: pq.abc.PGconn, command: str) -> pq.abc.PGresult:
    """Executes a command; raises SourceError where the server refuses it."""
    result = connection.exec_(command.encode())
    if result.status not in _DONE:
        raise SourceError(f"replication: {one_line(result.error_message)}")
    return result


def plain_name(name: str) -> str:
    """Returns the name; raises SourceError where it would need quoting."""
    # Replication commands take no parameters, so only plain names may stand in them.
    if _IDENTIFIER.fullmatch(name) is None:
        raise SourceError(f"{name!r}: slots and publications are named in lower-case letters, digits and underscores")
    return name


def one_line(raw: bytes) -> str:
    """Returns a message of the server in one line, without secrets."""
    return redacted(" ".join(raw.decode("utf-8", "replace").split()))


@contextmanager
def as_source_error() -> Iterator[None]:
    """Raises psycopg's errors as SourceError."""
    try:
        yield
    except psycopg.Error as error:
        raise SourceError(f"replication: {one_line(str(error).encode())}") from None
