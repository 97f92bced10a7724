"""Runs the extractor under ``kainite extract`` and kills either: each transaction arrives, with one number."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kainite.base.errors import SourceError
from kainite.capture.postgresql import extractor as extractor_module
from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.extractor import PostgresExtractor, Reading
from kainite.capture.postgresql.offset import Offset
from kainite.capture.postgresql.replication import ReplicationStream, SourceSlot, create_slot
from kainite.capture.postgresql.replication_frames import format_lsn, parse_lsn
from kainite.capture.serving import markers_of
from kainite.capture.truncate import OnTruncate
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.extract.offsets.place import Place
from kainite.settings import ExtractOffsets
from kainite_demo.json_lines import JsonLinesFile
from support.names import unique
from support.waiting import eventually

SHARDS = 3
LIMIT = 60.0
_ASKING = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE %s"
_CONFIRMED = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s"


class Bench:
    """A source, a stream and the settings of an extraction between them."""

    def __init__(self, source: SourceSlot, kinesis: Any, endpoint: str, folder: Path) -> None:
        self.source = source
        self.kinesis = kinesis
        self.stream = unique("extractor")
        self.log = folder / "extract.log"
        self.journal = folder / "journal"
        self.offset_file = OffsetFile(folder / "offset", self.stream, ExtractOffsets.KAINITE)
        self.settings = folder / "app.properties"
        kinesis.create_stream(StreamName=self.stream, ShardCount=SHARDS)
        with create_slot(source) as slot:
            self.offset_file.create(Place(Offset(slot.lsn, 0).as_json()))
        lines = {
            "applicationName": "extraction",
            "streamName": self.stream,
            "regionName": "us-east-1",
            "kinesisEndpoint": endpoint,
            "extractorName": shlex.join(self._extractor()),
            "extractorMode": "cyclic",
            "extractorOffsets": "kainite",
            "extractorOffsetFile": "offset",
            "extractorIntervalMillis": "10",
            "extractorTries": "3",
            "taskBackoffTimeMillis": "50",
            "extractSpread": "record",
        }
        self.settings.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "kainite", "--log-format", "json", "extract", "-p", str(self.settings)]
        with self.log.open("wb") as stderr:
            process = subprocess.Popen(command, stderr=stderr)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def number(self) -> int:
        """Returns the number of the last transaction that is durably on the stream."""
        return int(self.offset_file.load().start["number"])

    def child(self) -> int | None:
        """Returns the process id of the extractor that was started last."""
        return max(
            (line["pid"] for line in JsonLinesFile(self.log).read() if line["event"] == "child started"), default=None
        )

    def kill_child(self) -> None:
        pid = self.child()
        with suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, signal.SIGKILL)

    def _extractor(self) -> list[str]:
        options = {
            "source": self.source.url,
            "slot": self.source.slot,
            "publication": self.source.publication,
            "journal": str(self.journal),
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        return [str(Path(sysconfig.get_path("scripts"), PROGRAM)), *arguments]

    def units(self) -> dict[str, list[dict[str, Any]]]:
        """Returns all records of the stream, by unit."""
        units = defaultdict(list)
        for shard in self.kinesis.list_shards(StreamName=self.stream)["Shards"]:
            for record in self.records(shard["ShardId"]):
                units[record["uow"]].append(record)
        return dict(units)

    def records(self, shard: str) -> Iterator[dict[str, Any]]:
        iterator = self.kinesis.get_shard_iterator(
            StreamName=self.stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while True:
            reply = self.kinesis.get_records(ShardIterator=iterator)
            yield from (orjson.loads(record["Data"]) for record in reply["Records"])
            if not reply["Records"] and not reply["MillisBehindLatest"]:
                return
            iterator = reply["NextShardIterator"]


@pytest.fixture
def bench(source: SourceSlot, kinesis: Any, moto_endpoint: str, tmp_path: Path) -> Bench:
    return Bench(source, kinesis, moto_endpoint, tmp_path)


class Application:
    """Writes transactions of one to six inserts, some with an update, in a thread until it is stopped."""

    def __init__(self, url: str, seed: int, pause: float = 0.005) -> None:
        self.committed = 0
        self._url = url
        self._choice = random.Random(seed)
        self._pause = pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Application:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._stop.wait(self._pause):
                with connection.transaction():
                    self._write(connection)
                self.committed += 1

    def _write(self, connection: psycopg.Connection) -> None:
        first = 10 * self.committed
        for part in range(self._choice.randint(1, 6)):
            connection.execute("INSERT INTO item VALUES (%s, %s, 1.10)", [first + part, str(self.committed)])
        if self._choice.random() < 0.5:
            connection.execute("UPDATE item SET price = 2.20 WHERE id = %s", [first])


def wait_for_number(bench: Bench, process: subprocess.Popen[bytes], number: int) -> None:
    deadline = time.monotonic() + LIMIT
    while bench.number() < number:
        if process.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"the extractor does not get on: {bench.log.read_text()}")
        time.sleep(0.01)


def change_count(unit: list[dict[str, Any]]) -> int:
    return int(next(record["count"] for record in unit if record.get("end")))


def check_units(units: dict[str, list[dict[str, Any]]], transactions: int) -> None:
    """Checks that units are whole, with one dense number each, in the source's order of commits."""
    by_number: dict[int, str] = {}
    for uow, records in units.items():
        (number,) = {record["number"] for record in records}
        count = change_count(records)
        changes = [record for record in records if not record.get("end")]
        assert by_number.setdefault(number, uow) == uow
        assert {change["ordinal"] for change in changes} == set(range(count))
        assert len(changes) < len(records), "the end is missing"
        assert {change["new"].get("name", "") for change in changes} == {str(number - 1)}
    assert sorted(by_number) == list(range(1, transactions + 1))


def test_each_transaction_arrives_once_spread_over_the_shards(bench: Bench) -> None:
    with bench.running() as process:
        with Application(bench.source.url, seed=1) as application:
            wait_for_number(bench, process, 30)
        wait_for_number(bench, process, application.committed)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 0, bench.log.read_text()
    units = bench.units()
    check_units(units, application.committed)
    assert all(len(unit) == change_count(unit) + 1 for unit in units.values()), "nothing comes twice"
    shards = bench.kinesis.list_shards(StreamName=bench.stream)["Shards"]
    assert all(list(bench.records(shard["ShardId"])) for shard in shards)
    journal = [commit for line in JsonLinesFile(bench.journal).read() for commit in line["commits"]]
    assert {uow: changes for uow, _, changes in journal} == {uow: change_count(unit) for uow, unit in units.items()}
    assert all(abs(time.time() - commit / 1e6) < 300 for _, commit, _ in journal)


def kill_extract(bench: Bench, process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def kill_child(bench: Bench, process: subprocess.Popen[bytes]) -> None:
    bench.kill_child()


@pytest.mark.parametrize("kill", [kill_extract, kill_child])
def test_killed_at_any_moment_nothing_is_missing_and_numbers_stay(
    bench: Bench, kill: Callable[[Bench, subprocess.Popen[bytes]], None]
) -> None:
    choice = random.Random(kill.__name__)
    with Application(bench.source.url, seed=1) as application:
        for _ in range(3):
            reached = bench.number()
            with bench.running() as process:
                wait_for_number(bench, process, reached + choice.randint(1, 40))
                time.sleep(choice.uniform(0.0, 0.1))  # any moment is as good as another: that is the test
                kill(bench, process)
                if process.poll() is None:
                    wait_for_number(bench, process, bench.number() + 1)
    with bench.running() as process:
        wait_for_number(bench, process, application.committed)
    check_units(bench.units(), application.committed)


def test_what_is_not_on_the_stream_is_not_acknowledged(bench: Bench, tmp_path: Path) -> None:
    with psycopg.connect(bench.source.url) as connection:
        connection.execute("INSERT INTO item VALUES (1, 'x', 1)")
    request = orjson.dumps({"start": bench.offset_file.load().start, "end": None})
    given = []
    for _ in range(2):
        extractor = PostgresExtractor(Reading(bench.source, journal=tmp_path / "journal"))
        given.append(list(extractor.answer(request)))
        extractor.close()
    assert given[0] == given[1], "the same request brings the same answer"
    assert [orjson.loads(message).keys() & {"end", "offset", "new"} for message in given[0]] == [
        {"new"},
        {"end"},
        {"offset"},
    ]


def test_asked_ahead_it_acknowledges_what_is_stored_and_no_more(bench: Bench, tmp_path: Path) -> None:
    start, asked = bench.offset_file.load().start, bench.offset_file.load().start
    extractor = PostgresExtractor(Reading(bench.source, journal=tmp_path / "journal"))
    for number in range(3):
        with psycopg.connect(bench.source.url) as connection:
            connection.execute("INSERT INTO item VALUES (%s, 'x', 1)", [number])
        *_, offset = extractor.answer(orjson.dumps({"start": asked, "end": None, "stored": start}))
        asked = orjson.loads(offset)["offset"]
        assert orjson.loads(offset)["ahead"] is True
    extractor.close()
    again = PostgresExtractor(Reading(bench.source, journal=tmp_path / "journal"))
    units = [orjson.loads(message).get("number") for message in again.answer(orjson.dumps({"start": start}))]
    again.close()
    assert units == [1, 1, 2, 2, 3, 3, None], "a fresh process has all that is not stored"


def test_a_request_that_does_not_follow_its_last_answer_is_refused(bench: Bench, tmp_path: Path) -> None:
    start = bench.offset_file.load().start
    extractor = PostgresExtractor(Reading(bench.source, journal=tmp_path / "journal"))
    list(extractor.answer(orjson.dumps({"start": start, "end": None})))
    with pytest.raises(SourceError, match=r"asked from .*'number': 7"):
        list(extractor.answer(orjson.dumps({"start": {**start, "number": 7}, "end": None})))
    extractor.close()


@pytest.mark.parametrize(
    "request_", [b"", b"{}", b"[]", b'{"start":null,"end":null}', b'{"start":{"lsn":"x","number":1}}']
)
def test_what_is_no_request_of_its_kind_is_refused(bench: Bench, tmp_path: Path, request_: bytes) -> None:
    with pytest.raises(SourceError, match=r"no request|no offset|no LSN"):
        list(PostgresExtractor(Reading(bench.source, journal=tmp_path / "journal")).answer(request_))


def test_markers_are_read_from_the_environment() -> None:
    names = ("EOM", "EOP", "EOB", "BNC")
    markers = markers_of({f"KAINITE_{name}": rf"{name}" for name in names})
    assert (markers.eom, markers.bnc) == (b"EOM\x06", b"BNC\x06")
    assert markers_of({}).eom == b"\n"


def request_of(offset: dict[str, Any]) -> bytes:
    return orjson.dumps({"start": offset, "end": None, "stored": offset})


def answers_until(
    extractor: PostgresExtractor, offset: dict[str, Any], enough: Callable[[list[Any]], bool]
) -> list[Any]:
    """Asks again and again, each time from the last offset that was given; returns all messages."""
    found: list[Any] = []
    deadline = time.monotonic() + LIMIT
    while not enough(found) and time.monotonic() < deadline:
        found += [orjson.loads(message) for message in extractor.answer(request_of(offset))]
        offset = next((one["offset"] for one in reversed(found) if "offset" in one), offset)
    assert enough(found), found
    return found


def ends(count: int) -> Callable[[list[Any]], bool]:
    """Returns a condition: so many units have ended."""
    return lambda found: sum("end" in one for one in found) == count


def slot_lsn(source: SourceSlot) -> int:
    with psycopg.connect(source.url) as connection:
        query = "SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = %s"
        row = connection.execute(query, [source.slot]).fetchone()
    assert row is not None
    return int(row[0])


def test_a_truncate_fails_its_unit_and_what_follows_is_extracted(bench: Bench) -> None:
    with psycopg.connect(bench.source.url, autocommit=True) as connection:
        connection.execute("TRUNCATE item")
        connection.execute("INSERT INTO item VALUES (1, 'x', 1)")
    extractor = PostgresExtractor(Reading(bench.source))
    found = answers_until(
        extractor, bench.offset_file.load().start, lambda found: sum("end" in one for one in found) == 2
    )
    extractor.close()
    truncated, inserted = found[0], next(one for one in found if one.get("operation") == "insert")
    assert (truncated["operation"], truncated["relation"]) == ("truncate", "public.item")
    assert truncated["refused"] == "TRUNCATE names no rows"
    assert (inserted["number"], inserted["new"]["id"]) == (2, "1")


def test_a_truncate_is_passed_over_where_that_is_asked_for_afterwards(bench: Bench) -> None:
    with psycopg.connect(bench.source.url, autocommit=True) as connection:
        connection.execute("TRUNCATE item")
        connection.execute("INSERT INTO item VALUES (1, 'x', 1)")
    extractor = PostgresExtractor(Reading(bench.source, on_truncate=OnTruncate.SKIP))
    found = answers_until(extractor, bench.offset_file.load().start, ends(2))
    extractor.close()
    assert [one["operation"] for one in found if "operation" in one] == ["insert"]
    assert [(one["number"], one["count"]) for one in found if "end" in one] == [(1, 0), (2, 1)]


def test_a_full_identity_gives_the_key_and_the_old_row(bench: Bench) -> None:
    with psycopg.connect(bench.source.url, autocommit=True) as connection:
        connection.execute("ALTER TABLE item REPLICA IDENTITY FULL")
        connection.execute("INSERT INTO item VALUES (1, 'x', 1)")
        connection.execute("UPDATE item SET id = 2, name = 'y'")
        connection.execute("DELETE FROM item")
    extractor = PostgresExtractor(Reading(bench.source))
    found = answers_until(
        extractor, bench.offset_file.load().start, lambda found: sum("end" in one for one in found) == 3
    )
    extractor.close()
    insert, update, delete = (one for one in found if "operation" in one)
    assert (insert["key"], "old" in insert) == ({"id": "1"}, False)
    assert (update["key"], update["old"]) == ({"id": "1"}, {"id": "1", "name": "x", "price": "1"})
    assert update["new"] == {"id": "2", "name": "y", "price": "1"}
    assert (delete["key"], delete["old"]) == ({"id": "2"}, {"id": "2", "name": "y", "price": "1"})


def test_the_offset_moves_while_nothing_of_the_publication_commits(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extractor_module, "ADVANCE_EVERY_S", 0.0)
    with psycopg.connect(bench.source.url, autocommit=True) as connection:
        connection.execute("DROP PUBLICATION changes")
        connection.execute("CREATE PUBLICATION changes FOR TABLE note")
    with psycopg.connect(bench.source.url, autocommit=True) as connection:
        # The slot sees the publication from here on.
        row = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone()
    assert row is not None
    begun = {"lsn": row[0], "number": 41}
    extractor = PostgresExtractor(Reading(bench.source))
    with psycopg.connect(bench.source.url, autocommit=True) as connection:
        connection.execute("INSERT INTO item SELECT i, 'x', 1 FROM generate_series(1, 1000) AS i")
        row = connection.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    behind = int(row[0])

    def moved(found: list[Any]) -> bool:
        return any(Offset.from_json(one["offset"]).lsn >= behind for one in found) and slot_lsn(bench.source) >= behind

    found = answers_until(extractor, begun, moved)
    extractor.close()
    assert all(one.keys() == {"offset", "ahead", "lag"} and one["offset"]["number"] == 41 for one in found)


def test_an_offset_says_which_source_it_was_read_from_and_another_one_is_refused(bench: Bench) -> None:
    with psycopg.connect(bench.source.url, autocommit=True) as connection:
        connection.execute("INSERT INTO item VALUES (1, 'x', 1)")
    extractor = PostgresExtractor(Reading(bench.source))
    offset = answers_until(extractor, bench.offset_file.load().start, ends(1))[-1]["offset"]
    extractor.close()
    assert offset["source"].keys() == {"system", "timeline", "database"}
    for name, value in (("system", "7"), ("database", "other")):
        elsewhere = {**offset, "source": {**offset["source"], name: value}}
        with pytest.raises(SourceError, match="the offset was read from"):
            list(PostgresExtractor(Reading(bench.source)).answer(request_of(elsewhere)))


def test_a_slot_that_another_reader_moves_while_it_is_waited_for_is_refused(source: SourceSlot) -> None:
    with create_slot(source) as slot:
        begin = slot.lsn
    request = request_of({"lsn": format_lsn(begin), "number": 0})
    with psycopg.connect(source.url, autocommit=True) as connection, ThreadPoolExecutor(1) as threads:

        def found(query: str, *values: object) -> Any:
            return next(iter(connection.execute(query, values)))[0]

        with ReplicationStream.open(source, begin) as other:
            waiting = threads.submit(lambda: list(PostgresExtractor(Reading(source)).answer(request)))
            eventually(lambda: found(_ASKING, f"START_REPLICATION SLOT {source.slot} %") == 2)
            connection.execute("INSERT INTO item VALUES (1, 'x', 1)")
            other.acknowledge(parse_lsn(found("SELECT pg_current_wal_insert_lsn()::text")))
            eventually(lambda: parse_lsn(found(_CONFIRMED, source.slot)) > begin)
        with pytest.raises(SourceError, match="what committed between them is lost"):
            waiting.result(LIMIT)


def test_an_offset_beyond_the_servers_wal_is_refused(bench: Bench) -> None:
    with pytest.raises(SourceError, match="the offset was made on another server"):
        list(PostgresExtractor(Reading(bench.source)).answer(request_of({"lsn": "FFFFFF/0", "number": 1})))


def test_a_publication_that_is_not_there_is_said_before_anything_is_skipped(bench: Bench) -> None:
    with psycopg.connect(bench.source.url, autocommit=True) as connection:
        connection.execute("DROP PUBLICATION changes")
    extractor = PostgresExtractor(Reading(bench.source))
    with pytest.raises(SourceError, match="publication changes does not exist on the source: changes that commit"):
        list(extractor.answer(request_of(bench.offset_file.load().start)))
    extractor.close()


def test_the_publication_is_looked_at_when_a_table_is_described_again(bench: Bench) -> None:
    with psycopg.connect(bench.source.url, autocommit=True) as connection:
        connection.execute("DROP PUBLICATION changes")
        connection.execute("CREATE PUBLICATION changes FOR TABLE item, note")
        # The slot sees the publication from here on.
        row = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone()
        connection.execute("INSERT INTO item VALUES (1, 'x', 1)")
    assert row is not None
    extractor = PostgresExtractor(Reading(bench.source))
    offset = answers_until(extractor, {"lsn": row[0], "number": 0}, ends(1))[-1]["offset"]
    with psycopg.connect(bench.source.url, autocommit=True) as connection:
        connection.execute("ALTER PUBLICATION changes DROP TABLE note")
        connection.execute("ALTER TABLE item ADD COLUMN colour text")
        connection.execute("INSERT INTO item VALUES (2, 'x', 1, 'red')")
    with pytest.raises(SourceError, match=r"lacks public\.note: changes of it are not sent"):
        answers_until(extractor, offset, ends(1))
    extractor.close()


def test_the_programs_errors_are_one_line(bench: Bench) -> None:
    with psycopg.connect(bench.source.url, autocommit=True) as connection:
        connection.execute("DROP PUBLICATION changes")
    with bench.running() as process:
        assert process.wait(LIMIT) == 1
    last = bench.log.read_text().splitlines()[-1]
    assert last.startswith("kainite: given up after 3 failures in a row (extractorTries): child ")
    assert bench.log.read_text().count(f"{PROGRAM}: publication changes does not exist") >= 3


def test_a_source_that_is_away_is_waited_for_and_read_on_when_it_is_back(
    source: SourceSlot, kinesis: Any, moto_endpoint: str, tmp_path: Path
) -> None:
    (socket,) = Path(str(conninfo_to_dict(source.url)["host"])).glob(".s.PGSQL.*[0-9]")
    with tempfile.TemporaryDirectory(prefix="kainite-") as folder:  # tmp_path is too long for a socket
        way = Path(folder, socket.name)
        way.symlink_to(socket)
        bench = Bench(replace(source, url=make_conninfo(source.url, host=folder)), kinesis, moto_endpoint, tmp_path)
        bench.settings.write_text(bench.settings.read_text().replace("extractorTries=3", "extractorTries=1"))
        with bench.running() as process, psycopg.connect(source.url, autocommit=True) as connection:
            connection.execute("INSERT INTO item VALUES (1, '0', 1)")
            wait_for_number(bench, process, 1)
            way.unlink()
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            connection.execute("INSERT INTO item VALUES (2, '1', 1)")
            eventually(lambda: bench.log.read_text().count('"event":"child ended"') >= 3, LIMIT)
            way.symlink_to(socket)
            wait_for_number(bench, process, 2)
            process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT) == 0
    events = [line["event"] for line in JsonLinesFile(bench.log).read()]
    assert events.count("waiting") == 1
    assert not [name for name in events if "failed" in name]
    check_units(bench.units(), 2)
