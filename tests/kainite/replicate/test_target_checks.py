"""What a look at a real target finds beside its source."""

from __future__ import annotations

import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate import ledger
from kainite.replicate.ends import ReplicaEnds, both_sessions
from kainite.replicate.findings import CheckFinding
from kainite.replicate.tables import published
from kainite.replicate.target_checks import look_at_target
from support.replicas import Loading, run, tables_of

LOG = "log/0"
SAME = "CREATE TABLE item (id int PRIMARY KEY, name text, price numeric); CREATE TABLE note (text text)"


def look(source: SourceSlot, target: str) -> list[CheckFinding]:
    ends = ReplicaEnds(source, target, LOG)
    catalogue = tables_of(target)
    with both_sessions(ends) as (one, other):
        return list(look_at_target(one, other, published(one, source.publication), catalogue, LOG))


def told(findings: list[CheckFinding], verdict: str) -> dict[str, str]:
    return {finding.about: f"{finding.found} → {finding.mend}" for finding in findings if finding.verdict == verdict}


def test_a_target_with_the_same_empty_tables_is_fine(source: SourceSlot, postgres: str) -> None:
    run(postgres, SAME)
    found = look(source, postgres)
    assert (told(found, "wrong"), told(found, "warning")) == ({}, {})
    assert told(found, "ok").keys() == {"tables", "foreign keys", "rows"}


@pytest.mark.parametrize(
    ("change", "verdict", "about", "text"),
    [
        ("DROP TABLE note", "wrong", "tables", "lacks public.note → kainite replicate init --write"),
        ("ALTER TABLE item DROP name", "wrong", "columns", 'ALTER TABLE public.item ADD COLUMN "name" text'),
        ("ALTER TABLE item ALTER price TYPE int", "warning", "columns", 'ALTER COLUMN "price" TYPE numeric'),
        ("ALTER TABLE item ALTER name SET NOT NULL", "warning", "columns", "takes NULL in the source alone"),
        ("ALTER TABLE item ADD more int NOT NULL", "warning", "columns", "nothing comes for it"),
        (
            "ALTER TABLE item DROP name, ADD name text GENERATED ALWAYS AS ('x') STORED", "wrong", "columns",
            'ALTER COLUMN "name" DROP EXPRESSION',
        ),
        ("INSERT INTO note VALUES ('mine')", "wrong", "rows", "TRUNCATE public.note"),
        ("ALTER TABLE item ADD EXCLUDE USING gist (int4range(id, id + 1) WITH &&)", "warning", "exclusion", "item ("),
        (
            "ALTER TABLE item ADD a int; CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES item);"
            " ALTER TABLE item ADD FOREIGN KEY (a) REFERENCES b", "wrong", "foreign keys", "form a cycle (b, item)",
        ),
    ],
)  # fmt: skip
def test_what_differs_is_told(
    source: SourceSlot, postgres: str, change: str, verdict: str, about: str, text: str
) -> None:
    run(postgres, SAME, change)
    assert text in told(look(source, postgres), verdict)[about]


def test_schemas_that_are_left_out_are_told(source: SourceSlot, postgres: str) -> None:
    made = "CREATE SCHEMA more; CREATE TABLE more.t (id int PRIMARY KEY)"
    run(source.url, made)
    run(postgres, SAME, made)
    assert told(look(source, postgres), "wrong")["settings"].endswith("targetSchemas = more, public")


def test_rows_that_a_load_has_put_there_are_no_hindrance(source: SourceSlot, postgres: str) -> None:
    run(postgres, SAME, *ledger.CREATE, "INSERT INTO note VALUES ('loaded')")
    run(postgres, "INSERT INTO kainite_load (log_partition, generation, state) VALUES ('log/0', 1, 'loading')")
    assert "goes on, or begins anew" in told(look(source, postgres), "ok")["rows"]
    assert Loading(ReplicaEnds(source, postgres, LOG), 0).status().state == "loading"
