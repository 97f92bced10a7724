"""A MariaDB server with a binlog, a source database of a test's own there, and its extractor in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import orjson
import pymysql

from kainite.capture.mysql.extractor import BinlogReading, MysqlExtractor
from kainite.targets.mariadb.connection import connect
from kainite_demo.mariadb_server import BINLOG
from support.mariadb_server import drop_database, running
from support.mysql_server import IS_MYSQL, WITH_GTIDS
from support.names import unique

_ANSWERS: Final = 300
"""Most answers of the extractor without what is waited for."""


@contextmanager
def mariadb_with_binlog(folder: Path, *options: str) -> Iterator[str]:
    """Runs a server; yields the address of its own database."""
    with running(folder, *(WITH_GTIDS if IS_MYSQL else BINLOG), *options) as url:
        yield url


@contextmanager
def source_database(server: str) -> Iterator[str]:
    """Makes an empty database; yields its address."""
    name = unique("source").replace("-", "_")
    execute(server, f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    yield server.replace("/mysql?", f"/{name}?")
    drop_database(server, name)


def execute(url: str, *statements: str) -> None:
    """Executes statements in one session, which is lenient: values go in as a careless application's do."""
    with closing(session(url)) as connection:
        for statement in statements:
            connection.query(statement)


def session(url: str) -> pymysql.connections.Connection:
    """Opens a session without any sql_mode."""
    connection = connect(url)
    connection.query("SET SESSION sql_mode = '', time_zone = 'SYSTEM'")
    return connection


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    """Returns the rows of a query, as the server spells them."""
    with closing(session(url)) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def here(url: str, number: int = 0) -> dict[str, Any]:
    """Returns the offset of all that commits from now on."""
    status = "SHOW BINARY LOG STATUS" if IS_MYSQL else "SHOW MASTER STATUS"
    file, position = rows(url, status)[0][:2]
    return {"file": file, "position": position, "number": number}


class Extraction:
    """An extractor, asked again and again from where it has come.

    Args:
        url: the source.
        offset: where it begins; from now on, where none is given.
        options: how the source is read.

    Attributes:
        offset: behind the latest answer.
        ahead: whether more may be asked before that is stored.
    """

    def __init__(self, url: str, offset: dict[str, Any] | None = None, **options: Any) -> None:
        self.ahead = False
        self.reading = BinlogReading(url, **options)
        self.offset = here(url) if offset is None else offset
        self._extractor = MysqlExtractor(self.reading)

    def answer(self) -> list[bytes]:
        """Returns the records of the next answer."""
        said = list(self._extractor.answer(orjson.dumps({"start": self.offset, "end": None})))
        if said and b'"offset"' in said[-1][:10]:
            given = orjson.loads(said.pop())
            self.offset, self.ahead = given["offset"], given["ahead"]
        return [record for record in said if record]

    def until(self, number: int) -> list[bytes]:
        """Returns the records up to the end of a transaction."""
        found: list[bytes] = []
        for _ in range(_ANSWERS):
            if self.offset["number"] >= number:
                return found
            found += self.answer()
        raise AssertionError(f"the source has sent {self.offset['number']} transactions of {number}")

    def quiet(self) -> list[bytes]:
        """Returns the records up to an answer without any, behind which no other options hold than before."""
        found: list[bytes] = []
        while True:
            before, records = self.offset.get("options"), self.answer()
            found += records
            if not records and self.offset.get("options") == before:
                return found

    def close(self) -> None:
        self._extractor.close()

    def __enter__(self) -> Extraction:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def told(records: list[bytes]) -> list[dict[str, Any]]:
    """Returns records as they are read."""
    return [orjson.loads(record) for record in records]


def keys(records: list[bytes]) -> list[tuple[Any, ...]]:
    """Returns number, operation and key of each change, and ``end`` and count of each end."""
    return [
        (one["number"], "end", one["count"])
        if one.get("end")
        else (one["number"], one.get("operation", "refused"), one.get("key", {}).get("id"))
        for one in told(records)
    ]
