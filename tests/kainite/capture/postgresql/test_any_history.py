"""Any history of commits, kills, old offset files, lost slots and other servers: no transaction is missing unsaid.

Each committed transaction gets one number, in the order of commits, without a gap; or the extractor refuses to go on.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import orjson
import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from psycopg.conninfo import make_conninfo

from kainite.base.errors import SourceError
from kainite.capture.postgresql.extractor import PostgresExtractor, Reading
from kainite.capture.postgresql.offset import Offset
from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.capture.truncate import OnTruncate
from kainite_demo.postgres_server import postgres
from support.waiting import eventually

_names = itertools.count()
ROWS: Final = st.lists(st.sampled_from(["item", "note", "large"]), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def another_server() -> Iterator[str]:
    """Gives the URL of a second cluster."""
    with (
        tempfile.TemporaryDirectory(prefix="kainite-pg-") as folder,
        postgres(Path(folder, "pg"), wal_level="logical") as url,
    ):
        yield url


class History(RuleBasedStateMachine):
    """A source, an extractor that may be gone at any message, what it has put on a stream, and its offset file.

    Attributes:
        committed: the transactions that must come, in the order of commits, by their ids in the source.
        stream: the records that are on the stream.
        files: the offset files that there were; the last one is the present one.
    """

    def __init__(self, server: str, another: str) -> None:
        super().__init__()
        self.server, self.another = server, another
        self.source = self.made(server)
        self.committed: list[int] = []
        self.stream: list[dict[str, Any]] = []
        with create_slot(self.source) as slot:
            self.files = [Offset(slot.lsn, 0).as_json()]
        self.asked = self.files[-1]
        self.truncates_skipped = False
        self.extractor: PostgresExtractor | None = None
        self.rows = itertools.count()
        self.columns = itertools.count()

    def made(self, server: str) -> SourceSlot:
        """Makes a database with a publication."""
        name = f"history_{os.getpid()}_{next(_names)}"
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name}")
        source = SourceSlot(make_conninfo(server, dbname=name), name, "changes")
        with psycopg.connect(source.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE item (id int PRIMARY KEY, name text)")
            connection.execute("CREATE TABLE note (id int PRIMARY KEY, name text)")
            connection.execute("ALTER TABLE note REPLICA IDENTITY FULL")
            connection.execute("CREATE PUBLICATION changes FOR ALL TABLES")
        return source

    # What applications do.

    @rule(tables=ROWS, then=st.sampled_from(["nothing", "update", "delete", "alter"]))
    def commits(self, tables: list[str], then: str) -> None:
        with self.transaction() as connection:
            for table in tables:
                self.insert(connection, table)
            if then == "alter":
                connection.execute(f"ALTER TABLE item ADD COLUMN more_{next(self.columns)} int DEFAULT 7")
                self.insert(connection, "item")
            elif then == "update":
                connection.execute("UPDATE note SET name = 'y'")
            elif then == "delete":
                connection.execute("DELETE FROM note")

    @rule(alone=st.booleans())
    def truncates(self, alone: bool) -> None:
        with self.transaction() as connection:
            connection.execute("TRUNCATE note, item")
            if not alone:
                self.insert(connection, "item")

    @rule()
    def rolls_back(self) -> None:
        with psycopg.connect(self.source.url) as connection:
            self.insert(connection, "item")
            connection.rollback()

    # What the extractor does, and what becomes of it.

    @rule(stored=st.booleans())
    def answers(self, stored: bool) -> None:
        """Takes an answer to its end; its offset is stored at once, or later."""
        self.take(stored=stored)

    @rule(messages=st.integers(0, 6))
    def is_killed_within_an_answer(self, messages: int) -> None:
        self.stream += self.records(itertools.islice(self.answer(), messages))
        self.dies()

    @rule()
    def is_killed_between_two_answers(self) -> None:
        self.dies()

    @rule()
    def is_started_with_another_truncate(self) -> None:
        self.dies()
        self.truncates_skipped = not self.truncates_skipped

    # What people and machines do to it.

    @precondition(lambda self: len(self.files) > 1)
    @rule(back=st.integers(1, 3))
    def the_offset_file_is_an_old_copy(self, back: int) -> None:
        """Asks from an old offset: refused if the source was told to forget what follows it."""
        newest = self.files[-1]
        old = self.files[max(0, len(self.files) - 1 - back)]
        self.dies()
        if self.slot_lsn() > Offset.from_json(old).lsn:
            self.is_refused(self.source, old, "what committed between them is lost")
        else:
            self.asked = old
            self.take(stored=False)
        self.files.append(newest)
        self.dies()

    @rule()
    def the_slot_is_advanced_by_another_reader(self) -> None:
        self.dies()
        with psycopg.connect(self.source.url, autocommit=True) as connection:
            query = "SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())"
            connection.execute(query, [self.source.slot])
        if self.slot_lsn() > Offset.from_json(self.files[-1]).lsn:
            self.is_refused(self.source, self.files[-1], "what committed between them is lost")
            self.begins_anew()

    @rule()
    def the_slot_is_dropped_and_made_again(self) -> None:
        self.dies()
        self.drop_slot(self.source)
        self.is_refused(self.source, self.files[-1], "does not exist on the source server")
        with psycopg.connect(self.source.url, autocommit=True) as connection:
            connection.execute("INSERT INTO note VALUES (-1, 'unseen')")
            connection.execute("DELETE FROM note WHERE id = -1")
        with create_slot(self.source):
            pass
        self.is_refused(self.source, self.files[-1], "what committed between them is lost")
        self.begins_anew()

    @rule()
    def the_source_moves_to_another_server(self) -> None:
        """Asks another server, which has a database and a slot, and whose LSNs are others."""
        if "source" not in self.files[-1]:
            return
        self.dies()
        there = self.made(self.another)
        try:
            with create_slot(there):
                pass
            self.is_refused(there, self.files[-1], "this server is cluster")
        finally:
            self.drop_slot(there)
            self.drop_database(there)

    def teardown(self) -> None:
        try:
            self.catch_up()
            self.check()
        finally:
            self.dies()
            self.drop_slot(self.source)
            self.drop_database(self.source)

    # The check.

    def check(self) -> None:
        units: dict[str, list[dict[str, Any]]] = {}
        for record in self.stream:
            units.setdefault(record["uow"], []).append(record)
        numbers = {int(uow.split("-")[1]): {one["number"] for one in records} for uow, records in units.items()}
        assert numbers == {xid: {number} for number, xid in enumerate(self.committed, 1)}
        for records in units.values():
            (count,) = {one["count"] for one in records if "end" in one}
            deltas = {one["ordinal"]: what(one) for one in records if "new" in one or "pieces" in one}
            assert len(deltas) == count
            assert all(deltas[one["ordinal"]] == what(one) for one in records if "new" in one or "pieces" in one)

    # Steps.

    def answer(self) -> Iterator[bytes]:
        if self.extractor is None:
            self.extractor = PostgresExtractor(
                Reading(self.source, on_truncate=OnTruncate.SKIP if self.truncates_skipped else OnTruncate.FAIL)
            )
            self.asked = self.files[-1]
        return self.extractor.answer(orjson.dumps({"start": self.asked, "end": None, "stored": self.files[-1]}))

    def records(self, messages: Iterator[bytes]) -> list[dict[str, Any]]:
        found = [orjson.loads(message) for message in messages if message]
        return [one for one in found if "offset" not in one and one.get("type") != "fragment"]

    def take(self, *, stored: bool) -> None:
        *messages, last = [*self.answer(), b""]
        messages = [message for message in (*messages, last) if message]
        self.stream += self.records(iter(messages))
        if messages and b'{"offset"' in messages[-1]:
            self.asked = orjson.loads(messages[-1])["offset"]
        if stored:
            self.files.append(self.asked)

    def catch_up(self) -> None:
        """Takes answers until every transaction has come."""

        def all_have_come() -> bool:
            self.take(stored=True)
            ended = {int(one["uow"].split("-")[1]) for one in self.stream if "end" in one}
            return ended >= set(self.committed) and self.files[-1]["number"] >= len(self.committed)

        eventually(all_have_come)

    def begins_anew(self) -> None:
        """Does what the error says: the tables are copied, and the extraction begins with the slot's place."""
        numbered = {one["number"]: int(one["uow"].split("-")[1]) for one in self.stream}
        # What has a number on the stream and no end there is incomplete in the log; a copy of the tables replaces it.
        ended = {one["number"] for one in self.stream if "end" in one}
        self.committed = [xid for number, xid in sorted(numbered.items()) if number in ended]
        self.stream = [one for one in self.stream if one["number"] in ended]
        lsn = Offset(self.slot_lsn(), len(self.committed)).as_json()
        self.files.append(lsn)

    def dies(self) -> None:
        if self.extractor is not None:
            self.extractor.close()
            self.extractor = None
            eventually(lambda: not self.slot("active"))
        self.asked = self.files[-1]

    def is_refused(self, source: SourceSlot, offset: dict[str, Any], reason: str) -> None:
        refusing = PostgresExtractor(Reading(source))
        with pytest.raises(SourceError, match=reason):
            list(refusing.answer(orjson.dumps({"start": offset, "end": None})))
        refusing.close()

    def insert(self, connection: psycopg.Connection, table: str) -> None:
        number = next(self.rows)
        name = "x" * 1_200_000 if table == "large" else str(number)
        table = "item" if table == "large" else table
        connection.execute(f"INSERT INTO {table} (id, name) VALUES (%s, %s)", [number, name])

    def transaction(self) -> Any:
        return _Noted(self.source.url, self.committed.append)

    def slot(self, column: str) -> Any:
        with psycopg.connect(self.source.url) as connection:
            query = f"SELECT {column} FROM pg_replication_slots WHERE slot_name = %s"
            row = connection.execute(query, [self.source.slot]).fetchone()
        return row and row[0]

    def slot_lsn(self) -> int:
        return int(self.slot("confirmed_flush_lsn - '0/0'::pg_lsn"))

    def drop_slot(self, source: SourceSlot) -> None:
        with psycopg.connect(source.url, autocommit=True) as connection:
            query = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
            eventually(lambda: dropped(connection, query, source.slot))

    def drop_database(self, source: SourceSlot) -> None:
        server = self.server if source is self.source else self.another
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {source.slot} WITH (FORCE)")


class _Noted:
    """A transaction whose id is noted when it has committed."""

    def __init__(self, url: str, note: Callable[[int], None]) -> None:
        self._connection = psycopg.connect(url)
        self._note = note

    def __enter__(self) -> psycopg.Connection:
        return self._connection

    def __exit__(self, *_: object) -> None:
        row = self._connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()
        assert row is not None
        self._connection.commit()
        self._connection.close()
        self._note(row[0])


def dropped(connection: psycopg.Connection, query: str, slot: str) -> bool:
    try:
        connection.execute(query, [slot])
    except psycopg.errors.ObjectInUse:
        return False
    return True


def what(record: dict[str, Any]) -> Any:
    """Returns what a record says of its row, without the time at which pieces were made."""
    split = record.get("pieces")
    said = {**split, "made": 0} if split else [record["key"], record["new"], record.get("old")]
    return [record["relation"], record["operation"], said]


@pytest.mark.timeout(300)
def test_whatever_happens_each_transaction_has_one_number_or_the_extractor_refuses(
    postgres_server: str, another_server: str
) -> None:
    few = settings(
        max_examples=int(os.environ.get("KAINITE_HISTORIES", "6")),
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    made = cast("type[RuleBasedStateMachine]", lambda: History(postgres_server, another_server))
    run_state_machine_as_test(made, settings=few)
