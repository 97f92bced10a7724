"""What ``kainite replicate init`` makes for a MariaDB source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql.extractor import BinlogReading
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.replicate import ledger
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_preparation import write_offset
from kainite.settings import ExtractOffsets
from support.mariadb_source import here, source_database


@pytest.fixture
def ends(mariadb_source_server: str, postgres: str, tmp_path: Path) -> Iterator[BinlogEnds]:
    with source_database(mariadb_source_server) as url:
        offsets = OffsetFile(tmp_path / "offset", "s", ExtractOffsets.KAINITE)
        yield BinlogEnds(BinlogReading(url), postgres, "log/0", offsets)


def test_the_offset_file_begins_at_the_end_of_the_binlog_and_is_made_once(ends: BinlogEnds) -> None:
    (told,) = write_offset(ends)
    made = ends.offsets.load().start
    assert made == here(ends.source.url)
    assert f"begins at {made['file']}:{made['position']}" in told
    assert list(write_offset(ends)) == []


def test_a_target_that_is_loaded_gets_no_other_beginning(ends: BinlogEnds) -> None:
    with psycopg.connect(ends.target, autocommit=True) as connection:
        for statement in ledger.CREATE:
            connection.execute(statement)
        connection.execute("INSERT INTO kainite_load (log_partition, generation, state, position) VALUES ('log/0', 1,"
                           " 'live', '0/11')")  # fmt: skip
    with pytest.raises(SourceError, match="is missing, and the target has been loaded"):
        list(write_offset(ends))
