"""An offset belongs to one cluster, one database, and a timeline that the server has had."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.source_identity import SourceIdentity, SourceServer, check_source, timeline_ends

HERE = SourceIdentity("7390", 2, "shop")
SERVER = SourceServer(HERE, written_lsn=1_000, left_at={1: 500})


@pytest.mark.parametrize(
    ("noted", "lsn"),
    [
        (HERE, 0),
        (HERE, 1_000),
        (None, 700),
        (replace(HERE, timeline=1), 500),
    ],
    ids=["begun", "all is extracted", "a person's offset", "promoted with all that was extracted"],
)
def test_the_source_of_the_offset_is_read(noted: SourceIdentity | None, lsn: int) -> None:
    check_source(noted, lsn, SERVER)


@pytest.mark.parametrize(
    ("noted", "lsn", "cause"),
    [
        (replace(HERE, system="7391"), 5, "cluster with the system identifier 7391"),
        (replace(HERE, database="bank"), 5, "read from database bank, and --source names database shop"),
        (replace(HERE, timeline=3), 5, "a former primary or a backup"),
        (replace(HERE, timeline=1), 501, "transactions that were extracted are not on this server"),
        (HERE, 1_001, "has written WAL up to 0/3E8 alone"),
        (None, 1_001, "the offset was made on another server"),
    ],
)
def test_another_source_is_refused(noted: SourceIdentity | None, lsn: int, cause: str) -> None:
    with pytest.raises(SourceError, match=cause):
        check_source(noted, lsn, SERVER)


def test_a_timeline_that_the_server_never_had_is_refused() -> None:
    with pytest.raises(SourceError, match="never had it"):
        check_source(replace(HERE, timeline=1), 5, replace(SERVER, left_at={}))


def test_a_timeline_history_file_is_read() -> None:
    history = "# comment\n1\t0/1F4\tno recovery target specified\n\n2\t1/0\tbefore 2000-01-01\n"
    assert timeline_ends(history) == {1: 500, 2: 1 << 32}


def test_an_identity_reads_back() -> None:
    assert SourceIdentity.from_json(HERE.as_json()) == HERE
