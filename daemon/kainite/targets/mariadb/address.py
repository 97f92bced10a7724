"""How a MariaDB or MySQL target is written: ``mariadb://user:password@host:port/database?name=value``. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from kainite.base.redaction import redacted_url, secrets_in_url
from kainite.settings.kinds.target_kinds import TargetAddress
from kainite.settings.kinds.target_url import problem_of_database_url

PREFIXES: Final = ("mariadb://", "mysql://")
_PORT: Final = 3306
_PARAMETERS: Final = ("unix_socket", "ssl_ca", "ssl_cert", "ssl_key")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A database on a server.

    Attributes:
        host, port: of the server; not used with ``unix_socket``.
        user, password: of the role; the driver's defaults where the address has none.
        database: the schema whose tables deltas call without a schema.
        unix_socket: the path of the server's socket; None for TCP.
        ssl_ca: a file with the authority of the server's certificate. With it the connection is encrypted, and the
            certificate and the host's name in it are verified.
        ssl_cert, ssl_key: files with the client's own certificate.
    """

    host: str
    port: int
    user: str | None
    password: str = field(repr=False)
    database: str
    unix_socket: str | None = None
    ssl_ca: str | None = None
    ssl_cert: str | None = None
    ssl_key: str | None = None


def server_of(url: str) -> ServerAddress:
    """Returns what an address says.

    Raises:
        ValueError: it cannot be read, or a parameter is unknown; the message quotes no secret.
    """
    if problem := problem_of_database_url(url):
        raise ValueError(problem)
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(given.keys() - set(_PARAMETERS)):
        raise ValueError(f"has the parameter {unknown[0]}: known are {', '.join(_PARAMETERS)}")
    if "," in parts.netloc.rpartition("@")[2]:
        raise ValueError("names several hosts: MariaDB's driver takes one")
    if not (database := unquote(parts.path.removeprefix("/"))):
        raise ValueError("names no database: mariadb://user@host/database")
    return ServerAddress(
        host=parts.hostname or "localhost",
        port=parts.port or _PORT,
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password or ""),
        database=database,
        **{name: value for name, value in given.items() if value},
    )


def _parse(text: str, folder: Path) -> str:
    server_of(text)
    return f"mariadb://{text.partition('://')[2]}"


ADDRESS = TargetAddress(_parse, redacted_url, secrets_in_url)
