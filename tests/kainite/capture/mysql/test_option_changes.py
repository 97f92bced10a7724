"""An extraction is killed and begun with other options: what it has put comes again with the changes that it had.

``put`` is what is on the stream, ``stored`` the offset file. A killed process has put answers that are not stored.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from kainite.capture.mysql.taken_options import OTHERS, TakenOptions
from kainite.capture.truncate import OnTruncate
from support.mariadb_source import Extraction, execute, here, session

TABLES = ("a", "b", "c")
MAKE = tuple(f"CREATE TABLE {name} (id int PRIMARY KEY)" for name in TABLES)


@dataclass
class Writer:
    """Commits transactions in a source: each inserts into a and b, and each third empties c."""

    url: str
    count: int = 0

    def go(self, times: int) -> None:
        with closing(session(self.url)) as connection:
            for _ in range(times):
                self.count += 1
                for statement in self._statements(self.count):
                    connection.query(statement)

    def _statements(self, number: int) -> Sequence[str]:
        if number % 3 == 0:
            return ["TRUNCATE c"]
        return ["BEGIN", f"INSERT INTO a VALUES ({number})", f"INSERT INTO b VALUES ({number})", "COMMIT"]


@dataclass
class Stream:
    """What was put, and the offset file.

    Attributes:
        stored: the offset file.
        put: each unit's number, with the sets of records that were put of it.
    """

    stored: dict[str, Any]
    put: defaultdict[int, list[list[dict[str, Any]]]] = field(default_factory=lambda: defaultdict(list))

    def take(self, records: Sequence[bytes]) -> None:
        """Puts an answer; its units are whole."""
        units: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
        for record in map(orjson.loads, records):
            units[record["number"]].append(record)
        for number, unit in units.items():
            assert unit[-1]["end"]
            self.put[number].append(unit)

    def check(self) -> None:
        """Checks that a unit that was put again has the records that it had."""
        for number, puts in self.put.items():
            assert all(one == puts[0] for one in puts), number

    def relations(self, number: int) -> set[str]:
        """Returns the tables of which a unit has changes."""
        return {record["relation"] for record in self.put[number][0] if "relation" in record}


@pytest.fixture
def writer(database: str, monkeypatch: pytest.MonkeyPatch) -> Writer:
    monkeypatch.setattr("kainite.capture.mysql.extractor._RECORDS", 1)
    monkeypatch.setattr("kainite.capture.mysql.extractor._IDLE", 0.05)
    execute(database, *MAKE)
    return Writer(database)


def options_of(offset: dict[str, Any]) -> TakenOptions:
    return TakenOptions.from_json(offset["options"])


def test_what_was_put_before_a_kill_comes_again_under_the_former_options(writer: Writer) -> None:
    with Extraction(writer.url, tables=("a",)) as first:
        assert first.answer() == []
        stored = first.offset
        assert (stored["number"], options_of(stored).since, first.ahead) == (0, {"a": 0}, False)
        writer.go(4)
        put = first.until(4)
    with Extraction(writer.url, stored) as second:
        writer.go(2)  # the process has not begun to read: it is asked first
        assert second.until(4)[: len(put)] == put
        found = second.until(6) + second.quiet()
        assert {orjson.loads(record).get("relation") for record in found} == {"a", None}
        assert options_of(second.offset).since == {"a": 0, OTHERS: 6}
        assert not second.ahead
        writer.go(1)
        last = [orjson.loads(record) for record in second.until(7)]
    assert [one.get("relation") for one in last] == ["a", "b", None]


def test_a_table_that_is_left_out_for_a_while_has_a_gap(writer: Writer) -> None:
    offset, since = here(writer.url), []
    for tables in (("a", "b"), ("a",), ("a", "b")):
        with Extraction(writer.url, offset, tables=tables) as extraction:
            extraction.quiet()
            writer.go(1)
            extraction.quiet()
            offset = extraction.offset
        since.append(options_of(offset).since)
    assert since == [{"a": 0, "b": 0}, {"a": 0}, {"a": 0, "b": 2}]


def test_a_gtid_that_a_person_begins_with_notes_the_options_too(writer: Writer) -> None:
    writer.go(1)
    with closing(session(writer.url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@global.gtid_binlog_pos")
        gtid = cursor.fetchall()[0][0]
    writer.go(1)
    with Extraction(writer.url, {"gtid": gtid, "number": 1}, tables=("b",)) as extraction:
        assert extraction.answer() == []
        offset = extraction.offset
    assert offset == {"gtid": gtid, "number": 1, "options": {"tables": {"b": 1}, "truncate": "fail"}}
    with Extraction(writer.url, offset, tables=("b",)) as extraction:
        assert {orjson.loads(record).get("relation") for record in extraction.until(2)} == {"b", None}


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_answer_and_begun_with_any_options_each_unit_has_one_content(writer: Writer, seed: int) -> None:
    choice = random.Random(seed)
    stream = Stream(here(writer.url))
    for _ in range(12):
        tables = tuple(choice.sample(TABLES, choice.randint(0, 3)))
        with Extraction(writer.url, stream.stored, tables=tables, on_truncate=choice.choice(list(OnTruncate))) as one:
            for _ in range(choice.randint(1, 8)):
                writer.go(choice.randint(0, 2))
                stream.take(one.answer())
                if not one.ahead or choice.random() < 0.3:  # nothing is asked ahead of such an offset
                    if choice.random() < 0.2:
                        break  # killed before it is stored
                    stream.stored = one.offset
    with Extraction(writer.url, stream.stored) as last:
        stream.take(last.quiet())
        stream.stored = last.offset
        writer.go(3)
        stream.take(last.until(writer.count))
    stream.check()
    assert sorted(stream.put) == list(range(1, writer.count + 1))
    options = options_of(stream.stored)
    for number in range(1, writer.count + 1):
        if number % 3:
            read = {name for name in ("a", "b") if (options.read_since([name]) or 0) < number}
            assert read <= stream.relations(number)
