"""Opens connections to MariaDB and MySQL: they speak UTF-8, and notice a network which swallows packets without a word.

A connection gets all settings that values depend on, whatever the server's or the role's are:

* ``sql_mode`` is strict: what a column cannot take is refused, not cut, and neither is 0 in an AUTO_INCREMENT column
  replaced by a number. Dates without a day (``0000-00-00``) are taken: a source of the same kind may have them;
* an UPDATE counts the rows that it finds (``FOUND_ROWS``): else one that changes nothing would count none;
* READ COMMITTED: a statement sees what was committed while an earlier one waited for a lock, and locks no gaps between
  rows, so that units which do not conflict do not wait for each other;
* the time zone is UTC, texts are ``utf8mb4``, foreign keys and unique keys are checked.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any, Final

import pymysql
from pymysql.constants import CLIENT

from kainite.base.redaction import learn, redacted, secrets_in_url
from kainite.targets.mariadb.address import ServerAddress, server_of

_CONNECT_SECONDS: Final = 10
_SILENT_SECONDS: Final = 600
"""Seconds without a byte of an answer after which a connection is given up."""

SESSION: Final = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00',"
    " foreign_key_checks = 1, unique_checks = 1, character_set_client = utf8mb4, character_set_connection = utf8mb4,"
    " collation_connection = utf8mb4_bin"
)
"""Pins what values depend on."""

READ_COMMITTED: Final = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"


def connect(
    url: str, silent: int | None = _SILENT_SECONDS, within: int = _CONNECT_SECONDS
) -> pymysql.connections.Connection:
    """Opens a connection in autocommit mode, on which several statements may be sent at once.

    Args:
        url: an address that :func:`~kainite.targets.mariadb.address.server_of` reads.
        silent: seconds without a byte of an answer after which it is given up; None for a statement that may take as
            long as it takes: TCP itself notices within a minute that the server is gone.
        within: seconds within which the server must take the connection.

    Raises:
        pymysql.Error: the server does not answer, or refuses the connection.
    """
    learn(secrets_in_url(url))
    server = server_of(url)
    connection = pymysql.connections.Connection(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        database=server.database,
        unix_socket=server.unix_socket,
        charset="utf8mb4",
        collation="utf8mb4_bin",
        client_flag=CLIENT.FOUND_ROWS | CLIENT.MULTI_STATEMENTS,
        connect_timeout=within,
        read_timeout=silent,
        write_timeout=silent,
        autocommit=True,
        local_infile=False,
        program_name="kainite",
        defer_connect=True,
        ssl_disabled=server.ssl_ca is None,
        ssl_ca=server.ssl_ca,
        ssl_cert=server.ssl_cert,
        ssl_key=server.ssl_key,
        ssl_verify_cert=True if server.ssl_ca else None,
        ssl_verify_identity=bool(server.ssl_ca),
    )
    if server.ssl_ca is None and not server.unix_socket:
        _encrypt_if_possible(connection)
    try:
        file = server.unix_socket
        _log_in(connection, _opened_file(connection, file, within) if file else _opened(server, within))
        connection.query(SESSION)
        connection.query(READ_COMMITTED)
    except pymysql.Error as error:
        if connection.open:
            connection.close()
        shown = redacted(str(error.args[-1] if error.args else error))
        number = error.args[0] if error.args else 0
        raise type(error)(number, shown) from None
    return connection


def _log_in(connection: Any, opened: socket.socket) -> None:
    """Shows the server who connects.

    A server without TLS wants MySQL's passwords (``caching_sha2_password``) encrypted by its RSA key, for which PyMySQL
    needs another package.

    Raises:
        pymysql.Error: the server refuses, or that package is missing.
    """
    try:
        connection.connect(opened)
    except RuntimeError:
        opened.close()
        raise pymysql.OperationalError(
            2061, "the server offers no TLS, and wants the password encrypted by RSA: let it offer TLS (ssl_cert,"
            " ssl_key), or pip install cryptography",
        ) from None  # fmt: skip


def _encrypt_if_possible(connection: Any) -> None:
    """Lets a connection be encrypted where the server can, without a look at its certificate.

    PyMySQL does so by itself, and reads all authorities of the system for it, which takes it 90 ms.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection.ctx, connection.ssl = context, True


def _opened_file(connection: Any, path: str, within: int) -> socket.socket:
    """Opens a Unix socket; PyMySQL does so by itself, and leaves it open where the server is away.

    Nobody else listens there, so a password may be sent as MySQL's ``caching_sha2_password`` has it.
    """
    connection._secure = True  # noqa: SLF001
    opened = socket.socket(socket.AF_UNIX)
    try:
        opened.settimeout(within)
        opened.connect(path)
    except OSError as error:
        opened.close()
        raise pymysql.OperationalError(2003, f"cannot connect to {path}: {error}") from None
    return opened


def _opened(server: ServerAddress, within: int) -> socket.socket:
    """Opens a connection of TCP that the system gives up within a minute when nobody answers."""
    try:
        opened = socket.create_connection((server.host, server.port), within)
    except OSError as error:
        raise pymysql.OperationalError(2003, f"cannot connect to {server.host}:{server.port}: {error}") from None
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 40_000)):
        if (option := getattr(socket, name, None)) is not None:  # not on every system
            opened.setsockopt(socket.IPPROTO_TCP, option, value)
    return opened
