"""Events of the binlog: headers, checksums, GTIDs, statements."""

from __future__ import annotations

import zlib
from dataclasses import replace

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql.events import (
    HEADER,
    Kind,
    decode_event,
    gtid_of,
    query_of,
    rotated_to,
    stands_alone,
    uncompressed,
    writes_checksums,
)
from support.binlog import BINLOG, events, first


def test_all_events_of_a_file_are_read() -> None:
    found = list(events())
    assert sum(event.size for event in found) == len(BINLOG)
    assert {Kind.GTID_MARIADB, Kind.XID, Kind.XA_PREPARE, Kind.WRITE_ROWS_COMPRESSED_1} <= {one.kind for one in found}
    assert [event.artificial for event in found][:2] == [True, False]


def test_checksums_are_verified() -> None:
    data = HEADER.pack(0, Kind.XID, 7, 31, 31, 0) + bytes(8)
    good = data + zlib.crc32(data).to_bytes(4, "little")
    assert decode_event(good, checksums=True).body == bytes(8)
    with pytest.raises(SourceError, match="checksum"):
        decode_event(good[:-1] + b"?", checksums=True)
    with pytest.raises(SourceError, match="says that it has 31"):
        decode_event(data, checksums=False)


def test_gtids_are_spelled_as_the_server_spells_them() -> None:
    event = first(Kind.GTID_MARIADB)
    assert gtid_of(event) == "0-7-1"
    assert stands_alone(event)
    uuid = "00112233-4455-6677-8899-aabbccddeeff"
    body = b"\1" + bytes.fromhex(uuid.replace("-", "")) + (42).to_bytes(8, "little")
    assert gtid_of(replace(event, kind=Kind.GTID_MYSQL, body=body)) == f"{uuid}:42"
    assert gtid_of(replace(event, kind=Kind.ANONYMOUS_GTID)) is None
    with pytest.raises(SourceError):
        gtid_of(replace(event, body=b""))


def test_a_statement_has_its_sessions_database() -> None:
    query = query_of(first(Kind.QUERY).body)
    assert (query.database, query.text) == ("shop", "create database shop")


def test_a_rotation_names_the_next_file() -> None:
    assert rotated_to(next(events()).body) == ("binlog.000001", 4)


def test_a_file_says_whether_it_has_checksums() -> None:
    header = bytes(80)
    assert writes_checksums(header + b"\1" + bytes(4))
    assert not writes_checksums(header + b"\0" + bytes(4))


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x81\x05" + b"junk", b"\x81\x05" + zlib.compress(b"other length")])
def test_what_is_compressed_in_another_way_is_refused(data: bytes) -> None:
    with pytest.raises(SourceError, match="compressed"):
        uncompressed(data)
