"""Watches whether anybody changes what is read of a MariaDB source, from one place of its binlog on.

At a cut-over nobody may write in the source any more, and no server tells that for certain: ``read_only`` keeps those
from it alone who have no right to write all the same. What is certain is what has committed. So the binlog is read on
by the extractor's own code, beside the extraction: each change of a table that is read is seen, whoever made it.

A *marker* is a heartbeat (:mod:`kainite.capture.mysql.heartbeat`), a transaction without changes that are carried,
which goes the whole way as a unit of work under a number. Where units are applied in the order of their numbers,
everything before is in the target when the marker is.

States: *open*, as long as the connection lives. Nothing is left on the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import orjson

from kainite.base.errors import SourceError
from kainite.capture.mysql.extractor import MysqlExtractor
from kainite.capture.mysql.offset import BinlogOffset
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_point import end_of_binlog, offset_of, second_extractor, source_catalogue
from kainite.replicate.binlog_points import beat_binlog


class QuietBinlog:
    """A watch over a source; :func:`watching_binlog` makes one.

    Args:
        ends: source and target.
        catalogue: of the source.
        extractor: reads the binlog, up to the point so far.
        offset: where it began.
        point: the place from which on nothing escapes the watch.
    """

    def __init__(
        self,
        ends: BinlogEnds,
        catalogue: MysqlSourceCatalogue,
        extractor: MysqlExtractor,
        offset: BinlogOffset,
        point: BinlogPlace,
    ) -> None:
        self._ends = ends
        self._catalogue = catalogue
        self._extractor = extractor
        self._offset = offset
        self._point = point

    def mark(self) -> int:
        """Commits a marker; returns the number up to which all that committed is seen to change nothing.

        Raises:
            SourceError: somebody writes, or the source takes no heartbeat.
        """
        beat_binlog(self._ends)
        return self._look()

    def look(self) -> None:
        """Looks at all that has committed since the last look.

        Raises:
            SourceError: somebody has written in a table that is read since the point.
        """
        self._look()

    def _look(self) -> int:
        end = end_of_binlog(self._catalogue)
        for record in self._extractor.records_up_to(self._offset, end):
            if record and "end" not in (found := orjson.loads(record)):
                raise SourceError(self._still_written(str(found["uow"]), str(found.get("relation", "a table"))))
        return self._extractor.number_at(self._offset, end)

    def _still_written(self, uow: str, table: str) -> str:
        return (
            f"somebody still writes in the source: the transaction of unit {uow} has changed {table}, behind the"
            f" cut-over's point {self._point}. Find and end it, then start the cut-over again; the target is live as"
            " before"
        )


@contextmanager
def watching_binlog(ends: BinlogEnds) -> Iterator[QuietBinlog]:
    """Watches a source from a new point on, inside the ``with``; raises SourceError."""
    offset = offset_of(ends)
    with source_catalogue(ends) as (catalogue, _), closing(second_extractor(ends)) as extractor:
        point = end_of_binlog(catalogue)
        extractor.number_at(offset, point)
        yield QuietBinlog(ends, catalogue, extractor, offset, point)
