"""Opens a source: its catalogue, checks, and its binlog from an offset on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from kainite.base.errors import SourceError
from kainite.base.redaction import learn, secrets_in_url
from kainite.capture.mysql.binlog_connection import SILENT_S, BinlogStream
from kainite.capture.mysql.gtids import GtidPosition
from kainite.capture.mysql.offset import BinlogOffset
from kainite.capture.mysql.place import BinlogIdentity, BinlogPlace, check_gtids, check_identity
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.capture.mysql.source_checks import check_filters, check_place, check_source, check_told_places
from kainite.capture.mysql.still_there import BinlogNow
from kainite.capture.mysql.table_reading import TableReading
from kainite.capture.mysql.transactions import BinlogAssembler, Inside, TransactionEnded
from kainite.targets.mariadb.address import server_of


@dataclass(frozen=True, slots=True)
class Source:
    """What a process holds open.

    Attributes:
        url: the database's address.
        database: its name, as the server spells it.
        server: the server's own name: MySQL's UUID, MariaDB's number.
        gtids: of the transactions that were read.
        in_lower_case: whether the server keeps the names of databases and tables in lower case.
    """

    url: str
    database: str
    server: str
    stream: BinlogStream
    catalogue: MysqlSourceCatalogue
    reading: TableReading
    gtids: GtidPosition
    in_lower_case: bool = False

    @property
    def identity(self) -> BinlogIdentity:
        return BinlogIdentity(self.server, self.database, self.stream.begun)

    def end(self) -> BinlogPlace:
        """Returns the place behind the server's last event; raises SourceError."""
        return _end(self.catalogue)

    def look(self, place: BinlogPlace) -> BinlogNow:
        """Returns what the server says of its binlog now, at a place too.

        Raises:
            SourceError: it does not answer, or has no binlog any more.
        """
        end, files = _end(self.catalogue), _files(self.catalogue)
        gtids = _gtids_at(self.catalogue, place) if place.position <= files.get(place.file, 0) else None
        return BinlogNow(_server(self.catalogue), end, files, gtids)

    @contextmanager
    def another(self, begins: BinlogPlace) -> Iterator[Iterator[Inside]]:
        """Gives what stands inside one transaction, from its place.

        Raises:
            SourceError: the server does not have it any more.
        """
        with BinlogStream.open(self.url, begins) as stream:
            yield _inside_one(stream)

    def close(self) -> None:
        self.stream.close()
        self.catalogue.close()


def open_source(url: str, start: BinlogOffset, tables: tuple[str, ...]) -> Source:
    """Opens the source at an offset.

    Raises:
        SourceError: the server refused, is another one, lacks the place, or its binlog lacks something.
    """
    learn(secrets_in_url(url))
    try:
        wanted = server_of(url).database
    except ValueError as error:
        raise SourceError(f"--source {error}") from None
    catalogue = MysqlSourceCatalogue(url)
    try:
        database = str(catalogue.value("SELECT database()") or wanted)
        check_source(catalogue, database, tables)
        gtid = _check_begin(catalogue, database, start)
        stream = _begun(url, catalogue, database, start)
        server = _server(catalogue)
        in_lower_case = catalogue.variables("lower_case_table_names").get("lower_case_table_names") == "1"
    except BaseException:
        catalogue.close()
        raise
    reading = TableReading(catalogue, database, tables)
    return Source(url, database, server, stream, catalogue, reading, GtidPosition(gtid), in_lower_case)


def check_offset(url: str, start: BinlogOffset) -> None:
    """Checks that the source's binlog still leads on from an offset.

    Raises:
        SourceError: the server is another one, or its binlog lacks the place, or was written anew.
    """
    with closing(MysqlSourceCatalogue(url)) as catalogue:
        database = str(catalogue.value("SELECT database()"))
        _check_begin(catalogue, database, start)
        _begun(url, catalogue, database, start).close()


def _begun(url: str, catalogue: MysqlSourceCatalogue, database: str, start: BinlogOffset) -> BinlogStream:
    """Opens the binlog at an offset; raises SourceError where it is not the offset's."""
    stream = BinlogStream.open(url, start.place or start.gtid)
    try:
        stream.begin()
        if start.place is None:
            check_told_places(stream.file, _files(catalogue).get(stream.file, 0))
        check_identity(start.source, BinlogIdentity(_server(catalogue), database, stream.begun))
    except BaseException:
        stream.close()
        raise
    return stream


def _server(catalogue: MysqlSourceCatalogue) -> str:
    found = catalogue.variables("server_uuid", "server_id")
    return found.get("server_uuid") or found.get("server_id", "")


def _check_begin(catalogue: MysqlSourceCatalogue, database: str, start: BinlogOffset) -> str:
    """Checks that the server has the place, and logs the database; returns the GTIDs at the place."""
    status = _status(catalogue)
    if status is None:
        raise SourceError("the source's server has no binlog: start it with log_bin = binlog")
    check_filters(database, str(status[2] or ""), str(status[3] or ""))
    if start.place is None:
        if not catalogue.is_mariadb:
            raise SourceError("MySQL's extraction begins with a file and a position, not with a GTID")
        return start.gtid
    check_place(start.place, _files(catalogue))
    found = _gtids_at(catalogue, start.place)
    if found is None:
        return start.gtid
    check_gtids(start.gtid, found, start.place)
    return found


def _status(catalogue: MysqlSourceCatalogue) -> tuple[Any, ...] | None:
    try:
        found = catalogue.rows("SHOW MASTER STATUS")
    except SourceError:
        if catalogue.is_mariadb:
            raise
        found = catalogue.rows("SHOW BINARY LOG STATUS")  # MySQL 8.4 has no other
    return found[0] if found else None


def _end(catalogue: MysqlSourceCatalogue) -> BinlogPlace:
    """Returns the place behind the server's last event."""
    if (status := _status(catalogue)) is None:
        raise SourceError("the source's server has no binlog any more: start it with log_bin = binlog")
    return BinlogPlace(str(status[0]), int(status[1]))


def _files(catalogue: MysqlSourceCatalogue) -> dict[str, int]:
    """Returns the binlog's files, and their sizes."""
    return {str(row[0]): int(row[1]) for row in catalogue.rows("SHOW BINARY LOGS")}


def _gtids_at(catalogue: MysqlSourceCatalogue, place: BinlogPlace) -> str | None:
    """Returns the GTIDs that a server has at a place of its binlog; None where it cannot tell, as MySQL."""
    if not catalogue.is_mariadb:
        return None
    return str(catalogue.value("SELECT BINLOG_GTID_POS(%s, %s)", [place.file, place.position]) or "")


def _inside_one(stream: BinlogStream) -> Iterator[Inside]:
    assembler = BinlogAssembler()
    while (found := stream.receive(SILENT_S)) is not None:
        for step in assembler.feed(*found):
            if isinstance(step, Inside):
                yield step
            elif isinstance(step, TransactionEnded):
                return
    raise SourceError(f"the source server has sent nothing of its binlog for {SILENT_S:g} s")
