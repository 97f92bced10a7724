"""A PostgreSQL target of which all is there, and of which one thing is wrong for the apply job's role."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from kainite.doctor.finding import DoctorFinding, FindingState
from kainite.settings import load
from kainite_spark.doctor import look_at_target
from support.names import unique


@pytest.fixture
def role(postgres: str) -> Iterator[str]:
    """Gives a role that owns nothing and may do all with the table ``items``."""
    name = unique("role").replace("-", "_")
    with psycopg.connect(postgres, autocommit=True) as admin:
        for statement in (
            f"CREATE ROLE {name} LOGIN",
            "CREATE TABLE items (id integer PRIMARY KEY, v text)",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON items TO {name}",
            f"GRANT CREATE, USAGE ON SCHEMA public TO {name}",
        ):
            admin.execute(statement.encode())
        yield name
        admin.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


def run(postgres: str, statement: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(statement.encode())


def found(postgres: str, role: str, folder: Path) -> list[DoctorFinding]:
    """Returns what is not well for the role."""
    parts = psycopg.conninfo.conninfo_to_dict(make_conninfo(postgres, user=role))
    path = folder / "app.properties"
    target = f"postgresql://{role}@/{parts['dbname']}?host={parts['host']}"
    target += f"&port={parts['port']}" if "port" in parts else ""
    path.write_text(f"applicationName=app\nregionName=us-east-1\ntarget={target}\n")
    look = look_at_target(load(path, needs=()))
    return [finding for finding in look if finding.state is not FindingState.WELL]


def test_all_is_well(postgres: str, role: str, tmp_path: Path) -> None:
    assert found(postgres, role, tmp_path) == []


def test_a_right_that_is_missing_is_granted_by_the_remedy(postgres: str, role: str, tmp_path: Path) -> None:
    run(postgres, f"REVOKE UPDATE, DELETE ON items FROM {role}")
    [finding] = found(postgres, role, tmp_path)
    assert finding.what == f'{role} may not UPDATE, DELETE on "public"."items"'
    run(postgres, finding.remedy)
    assert found(postgres, role, tmp_path) == []


def test_tables_of_kainites_own(postgres: str, role: str, tmp_path: Path) -> None:
    run(postgres, f"REVOKE CREATE ON SCHEMA public FROM {role}; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    [finding] = found(postgres, role, tmp_path)
    assert finding.what == f"{role} may not make kainite_applied, kainite_fence, kainite_log_table in schema public"
    run(postgres, finding.remedy)
    assert found(postgres, role, tmp_path) == []


def test_row_security(postgres: str, role: str, tmp_path: Path) -> None:
    run(postgres, "ALTER TABLE items ENABLE ROW LEVEL SECURITY")
    [finding] = found(postgres, role, tmp_path)
    assert (finding.state, "row security" in finding.what) == (FindingState.WRONG, True)


def test_a_role_that_reads_alone(postgres: str, role: str, tmp_path: Path) -> None:
    run(postgres, f"ALTER ROLE {role} SET default_transaction_read_only = on")
    [finding] = found(postgres, role, tmp_path)
    run(postgres, finding.remedy)
    assert found(postgres, role, tmp_path) == []


def test_an_exclusion_constraint(postgres: str, role: str, tmp_path: Path) -> None:
    run(postgres, "ALTER TABLE items ADD CONSTRAINT apart EXCLUDE USING btree (v WITH =)")
    [finding] = found(postgres, role, tmp_path)
    assert "apart" in finding.what


def test_a_trigger_that_is_refused(postgres: str, role: str, tmp_path: Path) -> None:
    run(postgres, "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
    run(postgres, "CREATE TRIGGER t AFTER UPDATE ON items FOR EACH ROW EXECUTE FUNCTION f()")
    [finding] = found(postgres, role, tmp_path)
    assert finding.state is FindingState.WRONG
    run(postgres, finding.remedy.partition(";")[0])
    assert found(postgres, role, tmp_path) == []
