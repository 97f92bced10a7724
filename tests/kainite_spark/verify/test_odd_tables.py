"""Compares tables that both sides have made in different ways, and whose names need quotes."""

from __future__ import annotations

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from support.comparisons import compared
from support.replica import replica
from support.replicas import LOG, run

QUOTED = '"per%cent ""quoted"""'
SOURCE = f"""
    CREATE TABLE {QUOTED} ("k%" text, "z ü" int, v text, PRIMARY KEY ("z ü", "k%"));
    CREATE TABLE part (id numeric(6, 2) PRIMARY KEY, name char(4), doc json, more numeric(8, 2))
        PARTITION BY RANGE (id);
    CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (50);
    CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (50) TO (500);
    CREATE TABLE gone (id int PRIMARY KEY, v int);
"""
TARGET = f"""
    CREATE TABLE {QUOTED} (v text, "z ü" int, "k%" text, PRIMARY KEY ("z ü", "k%"), added int DEFAULT 7);
    CREATE TABLE part (id numeric(6, 2) PRIMARY KEY, name char(9), doc jsonb, more numeric(12, 4));
    CREATE TABLE gone (id int PRIMARY KEY);
"""
FILL = (
    """INSERT INTO part SELECT n, 'c', '{"b": 1,  "a":2}', n / 8.0 FROM generate_series(0, 140) n""",
    f"INSERT INTO {QUOTED} SELECT 'é' || n, n, '%' FROM generate_series(1, 9) n",
)


def test_tables_that_are_made_in_another_way_are_compared_by_what_they_say(source: SourceSlot, postgres: str) -> None:
    ends = ReplicaEnds(source, postgres, LOG)
    run(source.url, "DROP PUBLICATION changes")
    run(source.url, "CREATE PUBLICATION changes FOR ALL TABLES WITH (publish_via_partition_root)")
    with replica(source, postgres, at_source=(SOURCE,), at_target=(TARGET,)) as made:
        run(source.url, *FILL)
        made.catch_up(2)
        with made.living():
            found = compared(ends, only=["part", 'public.per%cent "quoted"'])
            assert (found.verdict, [table.rows_source for table in found.tables]) == ("equal", [141, 9])
            run(postgres, "UPDATE part SET more = more + 0.0001 WHERE id = 70", f"DELETE FROM {QUOTED} WHERE v = '%'")
            found = compared(ends)
    assert found.left_out == {"public.gone": "the target's table has no column v"}
    assert [(table.table, table.changed, table.missing) for table in found.tables] == [
        ("public.part", 1, 0),
        ('public.per%cent "quoted"', 0, 9),
    ]
    changed = next(row for row in found.rows if row.table == "public.part")
    assert (changed.key, changed.source, changed.target) == ({"id": "70.00"}, ("8.75",), ("8.7501",))
    missing = [row for row in found.rows if row.key.get("z ü") == "5"]
    assert [(row.key, row.source, row.target) for row in missing] == [
        ({"z ü": "5", "k%": "é5"}, ("é5", "5", "%"), None)
    ]
