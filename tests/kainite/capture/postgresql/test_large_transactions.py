"""Transactions and rows of any size, and those that cannot be carried: each is given or refused, and others go on."""

from __future__ import annotations

import os
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from typing import Any

import orjson
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from kainite.base.errors import SourceError
from kainite.capture.patient_output import PatientOutput
from kainite.capture.postgresql import extractor, pgoutput, replication
from kainite.capture.postgresql.extractor import PostgresExtractor, Reading
from kainite.capture.postgresql.offset import Offset
from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.capture.postgresql.replication_frames import parse_lsn
from support.waiting import eventually

LIMIT = 60.0


@pytest.fixture
def begun(source: SourceSlot) -> Offset:
    """Gives the offset at which the source's new slot begins."""
    with create_slot(source) as slot:
        return Offset(slot.lsn, 0)


def run(source: SourceSlot, *statements: str) -> None:
    """Runs each statement in a transaction of its own."""
    with psycopg.connect(source.url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def answers(opened: PostgresExtractor, begun: Offset, units: int) -> Iterator[bytes]:
    """Yields messages until so many units have ended; closes the extractor."""
    offset, ended = begun.as_json(), 0
    try:
        while ended < units:
            for message in opened.answer(orjson.dumps({"start": offset, "end": None})):
                if message.startswith(b'{"offset"'):
                    offset = orjson.loads(message)["offset"]
                ended += b'"end":true' in message
                yield message
    finally:
        opened.close()


def records(reading: Reading, begun: Offset, units: int) -> list[dict[str, Any]]:
    found = [orjson.loads(message) for message in answers(PostgresExtractor(reading), begun, units) if message]
    return [record for record in found if "offset" not in record]


def test_a_large_transaction_is_given_as_it_comes_and_is_never_held(source: SourceSlot, begun: Offset) -> None:
    rows = 40_000
    run(source, f"INSERT INTO item SELECT n, repeat('x', 200), 1 FROM generate_series(1, {rows}) AS n")
    ordinals, numbers = 0, set()
    tracemalloc.start()
    try:
        for message in answers(PostgresExtractor(Reading(source)), begun, 1):
            if (record := orjson.loads(message or b"{}")).get("operation") == "insert":
                assert record["ordinal"] == ordinals
                ordinals += 1
                numbers.add(record["number"])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (ordinals, numbers) == (rows, {1})
    assert peak < 200 * rows / 4, "not even a part of the rows' text may be held"


def test_the_source_does_not_cut_an_extractor_whose_answer_nobody_takes(
    source: SourceSlot, begun: Offset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "_STATUS_EVERY", 0.1)
    with psycopg.connect(source.url, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE \"{source.slot}\" SET wal_sender_timeout = '1s'")
        admin.execute("INSERT INTO item SELECT n, repeat('x', 200), 1 FROM generate_series(1, 60000) AS n")
        taking, giving = os.pipe()
        opened = PostgresExtractor(Reading(source))
        output = PatientOutput(giving, opened.keep_alive, every=0.05)
        failures: list[Exception] = []

        def serve() -> None:
            try:
                for message in answers(opened, begun, 1):
                    output.write(message)
                output.flush()
            except Exception as error:
                failures.append(error)
            finally:
                os.close(giving)

        server = threading.Thread(target=serve)
        server.start()
        query = (
            "SELECT 1 FROM pg_stat_replication WHERE reply_time > backend_start + interval '3 s' AND pid = ("
            "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s)"
        )
        try:
            eventually(lambda: failures or admin.execute(query, [source.slot]).fetchone(), limit=LIMIT)
        finally:
            with os.fdopen(taking, "rb") as pipe:
                given = pipe.read()
            server.join(LIMIT)
    assert not failures
    assert given.count(b'"operation":"insert"') == 60_000
    assert b'{"offset"' in given


def test_a_row_of_megabytes_comes_in_pieces(source: SourceSlot, begun: Offset) -> None:
    run(source, "INSERT INTO item VALUES (1, repeat('ä\"', 1500000), 1)", "INSERT INTO item VALUES (2, 'x', 1)")
    *pieces, main, end, small, _ = records(Reading(source), begun, 2)
    text = "".join(piece["data"] for piece in pieces)
    assert orjson.loads(text)["new"] == {"id": "1", "name": 'ä"' * 1_500_000, "price": "1"}
    assert main["pieces"]["total"] == len(pieces)
    assert main["pieces"]["crc32"] == zlib.crc32(text.encode())
    assert (main["operation"], end["count"], small["new"]["id"]) == ("insert", 1, "2")


def test_a_row_beyond_the_limit_fails_its_unit_alone_and_names_the_limit(
    source: SourceSlot, begun: Offset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgoutput, "MAX_CHANGE", 2_000_000)
    run(
        source,
        "INSERT INTO item VALUES (1, repeat('x', 3000000), 1), (2, 'x', 1)",
        "INSERT INTO item VALUES (3, 'x', 1)",
    )
    refused, kept, end, other, _ = records(Reading(source), begun, 2)
    assert refused["refused"].startswith("the row takes 30000")
    assert "64 MiB" in refused["refused"]
    assert (kept["new"]["id"], end["count"]) == ("2", 2)
    assert (other["number"], other["new"]["id"]) == (2, "3")


@pytest.fixture
def unencoded(postgres_server: str, source: SourceSlot) -> Iterator[SourceSlot]:
    """Gives a source whose database has no encoding, with a slot."""
    name = f"{source.slot}_ascii"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")
        there = SourceSlot(make_conninfo(postgres_server, dbname=name), name, "changes")
        run(there, "CREATE TABLE item (id int PRIMARY KEY, name text)", "CREATE PUBLICATION changes FOR ALL TABLES")
        yield there
        admin.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s AND NOT active",
            [name],
        )
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_text_that_is_not_utf_8_fails_its_unit_alone(unencoded: SourceSlot) -> None:
    with create_slot(unencoded) as slot:
        begun = Offset(slot.lsn, 0)
    run(unencoded, r"INSERT INTO item VALUES (1, E'\xff')", "INSERT INTO item VALUES (2, 'x')")
    refused, _, kept, _ = records(Reading(unencoded), begun, 2)
    assert "a text is not UTF-8" in refused["refused"]
    assert (kept["number"], kept["new"]["id"]) == (2, "2")


def test_what_blocks_the_extraction_is_named_and_can_be_passed_over(
    source: SourceSlot, begun: Offset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decode(data: bytes) -> pgoutput.Message:
        if b"poison" in data:
            raise SourceError("pgoutput: poison")
        return pgoutput.decode(data)

    monkeypatch.setattr(extractor, "decode", decode)
    run(
        source,
        "INSERT INTO item VALUES (1, 'x', 1)",
        "INSERT INTO item VALUES (2, 'x', 1), (3, 'poison', 1), (4, 'x', 1)",
        "INSERT INTO item VALUES (5, 'x', 1)",
    )
    with pytest.raises(
        SourceError, match=r"transaction pg-\d+-[0-9A-F/]+ cannot be extracted: pgoutput: poison"
    ) as told:
        records(Reading(source), begun, 3)
    lsn = str(told.value).split("--skip-transaction ")[1].split()[0]
    found = records(Reading(source, passed_over=frozenset({parse_lsn(lsn)})), begun, 3)
    first, _, refused, end, last, _ = found
    assert (first["number"], first["new"]["id"]) == (1, "1")
    assert refused["uow"].endswith(lsn)
    assert refused["refused"] == "the transaction was passed over (--skip-transaction)"
    assert (end["number"], end["count"]) == (2, 0)
    assert (last["number"], last["new"]["id"]) == (3, "5")
