"""What a look at a real source finds."""

from __future__ import annotations

from collections.abc import Collection

import psycopg
import pytest

from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.replicate.ends import source_session
from kainite.replicate.findings import CheckFinding
from kainite.replicate.source_checks import look_at_source
from kainite.replicate.tables import published
from support.replicas import run


def look(source: SourceSlot, required: Collection[str] = (), role: str = "") -> list[CheckFinding]:
    with source_session(source.url) as connection:
        if role:
            connection.execute(f"SET ROLE {role}".encode())
        tables = published(connection, source.publication)
        return list(look_at_source(connection, source, tables, required))


def told(findings: list[CheckFinding], verdict: str) -> dict[str, str]:
    return {finding.about: f"{finding.found} → {finding.mend}" for finding in findings if finding.verdict == verdict}


def test_a_source_that_has_all_is_fine(source: SourceSlot) -> None:
    with create_slot(source):
        pass
    found = look(source, ["public.item"])
    assert told(found, "wrong") == {}
    assert told(found, "ok").keys() == {"wal_level", "slot", "publication"}
    # The table note has no key.
    assert told(found, "warning").keys() == {"WAL", "keys"}


def test_what_is_missing_is_told(source: SourceSlot) -> None:
    found = told(look(source, ["public.none"]), "wrong")
    assert found["slot"].startswith(f"replication slot {source.slot} does not exist → SELECT pg_create_logical")
    assert found["publication"] == "changes lacks public.none → ALTER PUBLICATION changes ADD TABLE public.none"
    run(source.url, "ALTER PUBLICATION changes SET (publish = 'insert')")
    assert "does not publish all changes" in told(look(source), "wrong")["publication"]
    run(source.url, "DROP PUBLICATION changes")
    assert told(look(source), "wrong")["publication"] == (
        "changes does not exist → CREATE PUBLICATION changes FOR ALL TABLES"
    )


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ("ALTER TABLE item REPLICA IDENTITY NOTHING", "replica identity"),
        (
            "ALTER TABLE item ALTER name SET NOT NULL; CREATE UNIQUE INDEX i ON item (name);"
            " ALTER TABLE item REPLICA IDENTITY USING INDEX i",
            "replica identity",
        ),
    ],
)
def test_tables_that_do_not_tell_their_rows_are_named(source: SourceSlot, change: str, about: str) -> None:
    run(source.url, change)
    assert "item" in told(look(source), "wrong")[about]


def test_a_role_without_rights_is_told(source: SourceSlot) -> None:
    role = f"poor_{source.slot}"
    run(
        source.url,
        f"CREATE ROLE {role}",
        "ALTER TABLE note ENABLE ROW LEVEL SECURITY",
        f"GRANT SELECT ON note TO {role}",
    )
    try:
        found = told(look(source, role=role), "wrong")
    finally:
        run(source.url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")
    assert f'ALTER ROLE "{role}" REPLICATION' in found["role"]
    assert "GRANT SELECT ON public.item" in found["rights"]
    assert "public.note hides rows" in found["row security"]


def test_a_full_table_without_a_key_says_what_can_be_applied(source: SourceSlot) -> None:
    with psycopg.connect(source.url, autocommit=True) as connection:
        connection.execute("ALTER TABLE note REPLICA IDENTITY FULL")
    assert "inserts alone can be applied" in told(look(source), "warning")["keys"]


_WHOLE = """
    CREATE TABLE whole (id int PRIMARY KEY, n int NOT NULL) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF whole FOR VALUES FROM (0) TO (10); CREATE UNIQUE INDEX low_n ON low (n);
    ALTER TABLE low REPLICA IDENTITY USING INDEX low_n
"""


def test_a_partition_that_does_not_tell_its_rows_is_named_whichever_name_is_sent(source: SourceSlot) -> None:
    run(source.url, _WHOLE)
    assert "the index that public.low uses" in told(look(source), "wrong")["replica identity"]
    run(source.url, "ALTER PUBLICATION changes SET (publish_via_partition_root = true)")
    found = look(source)
    assert "the index that public.low uses" in told(found, "wrong")["replica identity"]
    assert told(found, "warning")["partitions"].startswith(
        "public.whole: TRUNCATE of a partition by itself is not sent"
    )
