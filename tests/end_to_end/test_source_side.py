"""What a real PostgreSQL sends by each replica identity, publication and kind of table, applied to a target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import orjson
import psycopg
import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.settings import ApplySettings
from support.postgresql_source import drop_slot, source
from support.replica import Replica, replica

__all__ = ["source"]

LONG = "repeat(md5('{}'), 300)"
"""A text that is stored apart from its row, in a column with ``STORAGE EXTERNAL``."""


@dataclass
class Following:
    """A replica, and a session of its source."""

    replica: Replica
    source: psycopg.Connection

    def run(self, *transactions: str) -> None:
        """Commits transactions in the source, and brings them to the target."""
        for each in transactions:
            self.source.execute(each.encode())
        self.replica.catch_up(len(transactions))

    def same(self, *tables: str) -> None:
        for table in tables:
            expected, found = self.replica.values(table)
            assert found == expected, table


@contextmanager
def following(
    source: SourceSlot,
    target: str,
    *scripts: str,
    at_source: Sequence[str] = (),
    at_target: Sequence[str] = (),
    schemas: tuple[str, ...] = (),
) -> Iterator[Following]:
    apply = ApplySettings(schemas=schemas)
    with (
        replica(source, target, *scripts, at_source=at_source, at_target=at_target, apply=apply) as made,
        psycopg.connect(source.url, autocommit=True) as connection,
    ):
        yield Following(made, connection)


DOCUMENT = """
    CREATE TABLE document (id int PRIMARY KEY, code text NOT NULL, title text, body text, UNIQUE (id, code));
    ALTER TABLE document ALTER body SET STORAGE EXTERNAL;
"""
IDENTITIES = {
    "DEFAULT": "ALTER TABLE document REPLICA IDENTITY DEFAULT",
    "FULL": "ALTER TABLE document REPLICA IDENTITY FULL",
    "USING INDEX": "ALTER TABLE document REPLICA IDENTITY USING INDEX document_id_code_key",
}


@pytest.mark.parametrize("identity", IDENTITIES)
def test_rows_follow_by_each_replica_identity(source: SourceSlot, postgres: str, identity: str) -> None:
    """Includes values that are stored apart, were not changed, and are not sent."""
    with following(source, postgres, DOCUMENT, at_source=[IDENTITIES[identity]]) as made:
        made.run(
            f"INSERT INTO document SELECT n, 'c' || n, 'title', {LONG.format('a')} FROM generate_series(1, 6) n",
            "UPDATE document SET title = 'changed, and the body not' WHERE id = 1",
            "UPDATE document SET id = 12 WHERE id = 2",
            "UPDATE document SET code = 'other' WHERE id = 3",
            "UPDATE document SET id = 14, code = 'both', title = NULL WHERE id = 4",
            f"UPDATE document SET body = {LONG.format('b')} WHERE id = 5",
            "DELETE FROM document WHERE id = 6",
            "UPDATE document SET id = id + 100",
            "BEGIN; DELETE FROM document WHERE id = 101; INSERT INTO document SELECT 101, 'again', 'x', body"
            " FROM document WHERE id = 103; UPDATE document SET title = 'twice' WHERE id = 101; COMMIT",
        )
        assert made.replica.failed() == {}
        made.same("document")


def test_a_key_that_is_stored_apart(source: SourceSlot, postgres: str) -> None:
    for_key = "SELECT string_agg(md5(n::text), '') FROM generate_series(1, 70) n"
    with following(
        source,
        postgres,
        "CREATE TABLE document (code text PRIMARY KEY, id int, title text)",
        "ALTER TABLE document ALTER code SET STORAGE EXTERNAL",
    ) as made:
        made.run(
            f"INSERT INTO document VALUES (({for_key}), 1, 'a'), ('short', 2, 'b')",
            "UPDATE document SET title = 'c'",
            "UPDATE document SET code = code || '!' WHERE id = 1",
            "DELETE FROM document WHERE id = 1",
        )
        assert made.replica.failed() == {}
        made.same("document")


PARTITIONED = """
    CREATE TABLE event (id int, at date, what text, n int DEFAULT 7, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
    CREATE TABLE event_2025 PARTITION OF event FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
    CREATE TABLE event_2026 PARTITION OF event FOR VALUES FROM ('2026-01-01') TO ('2027-01-01') PARTITION BY LIST (at);
    CREATE TABLE event_new_year PARTITION OF event_2026 FOR VALUES IN ('2026-01-01');
    CREATE TABLE event_rest PARTITION OF event_2026 DEFAULT;
"""
OTHER_SHAPE = "CREATE TABLE event (what text, n int DEFAULT 7, at date, id int, PRIMARY KEY (id, at))"
BY_ROOT = "ALTER PUBLICATION changes SET (publish_via_partition_root = true)"
EVENTS = (
    "INSERT INTO event SELECT n, '2025-12-25'::date + n, 'event ' || n FROM generate_series(1, 20) n",
    "UPDATE event SET what = 'other' WHERE id % 3 = 0",
    "UPDATE event SET at = at + 40 WHERE id % 4 = 0",
    "UPDATE event SET id = id + 100 WHERE id % 5 = 0",
    "DELETE FROM event WHERE id % 7 = 0",
    "INSERT INTO event_rest VALUES (500, '2026-08-01', 'into the partition')",
)


@pytest.mark.parametrize("by_root", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_partitions_follow(source: SourceSlot, postgres: str, by_root: bool, full: bool) -> None:
    identities = [f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in
                  ("event", "event_2025", "event_new_year", "event_rest")]  # fmt: skip
    own = [*([BY_ROOT] if by_root else []), *(identities if full else [])]
    with following(source, postgres, PARTITIONED, at_source=own) as made:
        made.run(*EVENTS)
        assert made.replica.failed() == {}
        made.same("event", "event_2025", "event_new_year", "event_rest")


def test_by_the_whole_the_target_may_be_partitioned_otherwise(source: SourceSlot, postgres: str) -> None:
    other = ["DROP TABLE event", OTHER_SHAPE]
    with following(source, postgres, PARTITIONED, at_source=[BY_ROOT], at_target=other) as made:
        made.run(*EVENTS)
        assert made.replica.failed() == {}
        query = "SELECT id, at, what, n FROM event ORDER BY 1"
        with psycopg.connect(postgres) as target:
            assert target.execute(query).fetchall() == made.source.execute(query).fetchall()


def test_a_partition_with_another_column_order(source: SourceSlot, postgres: str) -> None:
    odd = [
        "CREATE TABLE event_2027 (n int, what text, id int NOT NULL, gone int, at date NOT NULL)",
        "ALTER TABLE event_2027 DROP gone",
        "ALTER TABLE event ATTACH PARTITION event_2027 FOR VALUES FROM ('2027-01-01') TO ('2028-01-01')",
    ]
    with following(source, postgres, PARTITIONED, *odd, at_source=[BY_ROOT]) as made:
        made.run(
            "INSERT INTO event VALUES (1, '2027-01-01', 'a', 1), (2, '2027-01-02', 'b', 2)",
            "UPDATE event SET n = 5 WHERE id = 1",
            "UPDATE event SET at = '2025-02-02' WHERE id = 2",
            "DELETE FROM event WHERE id = 1",
        )
        assert made.replica.failed() == {}
        made.same("event")


SEVERAL = """
    CREATE SCHEMA sales; CREATE SCHEMA private;
    CREATE TABLE sales.item (id int PRIMARY KEY, name text); CREATE TABLE private.item (id int PRIMARY KEY, name text);
"""


def test_a_publication_of_a_schema(source: SourceSlot, postgres: str) -> None:
    by_schema = ["DROP PUBLICATION changes", "CREATE PUBLICATION changes FOR TABLES IN SCHEMA sales"]
    with following(source, postgres, SEVERAL, at_source=by_schema, schemas=("sales", "private")) as made:
        made.source.execute("INSERT INTO private.item VALUES (1, 'not told')")
        made.run("INSERT INTO sales.item VALUES (1, 'told')", "UPDATE sales.item SET name = 'again'")
        made.same("sales.item")
        assert made.replica.values("private.item")[1] == []


def test_several_slots_of_a_source_have_logs_of_their_own(source: SourceSlot, postgres: str) -> None:
    """Reads two slots, which number their transactions from 1 each, as extractors do that are duties of one fleet."""
    tables = "CREATE TABLE one (id int PRIMARY KEY); CREATE TABLE other (id int PRIMARY KEY)"
    own = [
        "DROP PUBLICATION changes",
        "CREATE PUBLICATION changes FOR TABLE one",
        "CREATE PUBLICATION more FOR TABLE other",
    ]
    with following(source, postgres, tables, at_source=own) as made:
        slot = replace(source, slot=f"{source.slot}_more", publication="more")
        second = Replica(slot, postgres, ledger="log/1")
        try:
            for n in range(5):
                made.source.execute("INSERT INTO one VALUES (%s)", [n])
                made.source.execute("INSERT INTO other VALUES (%s)", [n])
            with made.source.transaction():
                made.source.execute("DELETE FROM one WHERE id = 2")
                made.source.execute("DELETE FROM other WHERE id = 3")
            made.replica.catch_up(6)
            second.catch_up(6)
            assert made.replica.failed() == second.failed() == {}
            made.same("one", "other")
        finally:
            second.close()
            drop_slot(made.source, slot.slot)


FILTERED = "CREATE TABLE item (id int PRIMARY KEY, name text, secret text, n int)"


def test_a_publication_with_a_row_filter(source: SourceSlot, postgres: str) -> None:
    """Takes a row that an update brings in for an insert, and one that it takes out for a delete."""
    own = ["DROP PUBLICATION changes", "ALTER TABLE item REPLICA IDENTITY FULL",
           "CREATE PUBLICATION changes FOR TABLE item WHERE (n > 10)"]  # fmt: skip
    with following(source, postgres, FILTERED, at_source=own) as made:
        made.run(
            "INSERT INTO item SELECT n, 'a', 'b', n * 4 FROM generate_series(1, 5) n",
            "UPDATE item SET n = 50 WHERE id = 1",
            "UPDATE item SET n = 1 WHERE id = 5",
            "DELETE FROM item WHERE id = 4",
        )
        assert made.replica.failed() == {}
        with psycopg.connect(postgres) as target:
            assert target.execute("SELECT id, n FROM item ORDER BY 1").fetchall() == [(1, 50), (3, 12)]


def test_a_publication_with_a_column_list(source: SourceSlot, postgres: str) -> None:
    own = ["DROP PUBLICATION changes", "CREATE PUBLICATION changes FOR TABLE item (id, name)"]
    with following(source, postgres, FILTERED, at_source=own) as made:
        made.run("INSERT INTO item VALUES (1, 'a', 'b', 3)", "UPDATE item SET name = 'c', secret = 'd'")
        made.run("DELETE FROM item; INSERT INTO item VALUES (2, 'a', 'b', 3)")
        assert made.replica.failed() == {}
        with psycopg.connect(postgres) as target:
            assert target.execute("SELECT * FROM item").fetchall() == [(2, "a", None, None)]


GENERATED = """
    CREATE TABLE item (id int PRIMARY KEY, n int, twice int GENERATED ALWAYS AS (n * 2) STORED,
                       seq int GENERATED ALWAYS AS IDENTITY)
"""


def test_columns_that_both_sides_compute(source: SourceSlot, postgres: str) -> None:
    with following(source, postgres, GENERATED) as made:
        made.run("INSERT INTO item VALUES (1, 3)", "UPDATE item SET n = 4", "INSERT INTO item VALUES (2, 3)")
        assert made.replica.failed() == {}
        made.same("item")


COMPUTED = ["FOR TABLE item WITH (publish_generated_columns = stored)", "FOR TABLE item (id, n, twice, seq)"]
PLAIN = ["DROP TABLE item", "CREATE TABLE item (id int PRIMARY KEY, n int, twice int, seq int)"]


@pytest.mark.parametrize("publication", COMPUTED)
def test_a_computed_column_that_is_published_fills_one_that_the_target_does_not_compute(
    source: SourceSlot, postgres: str, publication: str
) -> None:
    own = ["DROP PUBLICATION changes", f"CREATE PUBLICATION changes {publication}"]
    with following(source, postgres, GENERATED, at_source=own, at_target=PLAIN) as made:
        made.run("INSERT INTO item VALUES (1, 3)", "UPDATE item SET n = 4", "INSERT INTO item VALUES (2, 3)")
        assert made.replica.failed() == {}
        made.same("item")


def test_a_computed_column_that_is_published_and_that_the_target_computes_too_fails_its_units(
    source: SourceSlot, postgres: str
) -> None:
    own = ["DROP PUBLICATION changes", f"CREATE PUBLICATION changes {COMPUTED[0]}"]
    with following(source, postgres, GENERATED, at_source=own) as made:
        made.run("INSERT INTO item VALUES (1, 3)")
        (cause,) = made.replica.failed().values()
        assert "column 'twice' of 'item' is computed by the target" in cause


MIXED = {
    "the whole FULL": ["ALTER TABLE event REPLICA IDENTITY FULL"],
    "a partition FULL": ["ALTER TABLE event_2025 REPLICA IDENTITY FULL"],
    "a partition by an index with the key": [
        "CREATE UNIQUE INDEX own ON event_2025 (n, at, id)", "ALTER TABLE event_2025 ALTER n SET NOT NULL",
        "ALTER TABLE event_2025 REPLICA IDENTITY USING INDEX own",
    ],
}  # fmt: skip
OF_ONE_PARTITION = (
    "INSERT INTO event SELECT n, '2025-12-25', 'event ' || n, n FROM generate_series(1, 5) n",
    "UPDATE event SET what = 'other' WHERE id = 3",
    "UPDATE event SET id = 100 WHERE id = 1",
    "UPDATE event SET n = 99 WHERE id = 4",
    "DELETE FROM event WHERE id = 2",
)


@pytest.mark.parametrize("mixed", MIXED)
def test_a_partition_may_have_another_identity_than_the_whole(source: SourceSlot, postgres: str, mixed: str) -> None:
    with following(source, postgres, PARTITIONED, at_source=[BY_ROOT, *MIXED[mixed]]) as made:
        made.run(*OF_ONE_PARTITION)
        assert made.replica.failed() == {}
        made.same("event")


def test_an_old_value_that_was_not_sent_is_not_taken_for_null(source: SourceSlot, postgres: str) -> None:
    """Keeps a unit that frees a unique value before the one that takes it."""
    script = PARTITIONED.replace("PRIMARY KEY (id, at)", "PRIMARY KEY (id, at), UNIQUE (n, at)")
    with following(source, postgres, script, at_source=[BY_ROOT, *MIXED["the whole FULL"]]) as made:
        made.run(*OF_ONE_PARTITION)
        old = [record["old"] for record in map(orjson.loads, made.replica.records) if "old" in record]
        assert old == [{"id": "1", "at": "2025-12-25"}, {"id": "2", "at": "2025-12-25"}]


def test_a_partition_that_does_not_tell_the_key_fails_its_changes_with_the_reason(
    source: SourceSlot, postgres: str
) -> None:
    """Keeps an update of the key from being taken for one of another row."""
    own = [
        BY_ROOT, "ALTER TABLE event_2025 ALTER n SET NOT NULL", "CREATE UNIQUE INDEX own ON event_2025 (n)",
        "ALTER TABLE event_2025 REPLICA IDENTITY USING INDEX own",
    ]  # fmt: skip
    with following(source, postgres, PARTITIONED, at_source=own) as made:
        made.run(*OF_ONE_PARTITION)
        causes = list(made.replica.failed().values())
        assert len(causes) == 4, causes
        assert all("USING INDEX of the partition public.event_2025 does not tell" in cause for cause in causes)


TRUNCATED = {
    ("TRUNCATE event_2025", False): "(truncate) of public.event_2025",
    ("TRUNCATE event", False): "(truncate) of public.event_2025",
    ("TRUNCATE event", True): "(truncate) of public.event",
}


@pytest.mark.parametrize(("command", "by_root"), TRUNCATED)
def test_a_truncate_of_partitions_fails_its_unit(
    source: SourceSlot, postgres: str, command: str, by_root: bool
) -> None:
    with following(source, postgres, PARTITIONED, at_source=[BY_ROOT] if by_root else []) as made:
        made.run(EVENTS[0], command, "INSERT INTO event VALUES (1000, '2025-02-02')")
        (cause,) = made.replica.failed().values()
        assert TRUNCATED[command, by_root] in cause
        assert "TRUNCATE names no rows" in cause


def test_postgresql_sends_no_truncate_of_a_partition_by_itself_under_the_wholes_name(
    source: SourceSlot, postgres: str
) -> None:
    """Shows what ``kainite replicate init`` and docs/extract.md warn of."""
    with following(source, postgres, PARTITIONED, at_source=[BY_ROOT]) as made:
        made.run(EVENTS[0])
        made.source.execute("TRUNCATE event_2025")
        made.run("INSERT INTO event VALUES (1000, '2025-02-02')")
        assert made.replica.failed() == {}
        source_rows, target_rows = made.replica.values("event")
        assert len(target_rows) > len(source_rows)
