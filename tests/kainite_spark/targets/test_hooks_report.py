"""``kainite apply --check`` and ``--triggers-on``."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result
from psycopg.conninfo import conninfo_to_dict

from kainite.base.errors import CatalogueError
from kainite.cli.main import main
from kainite.settings import ApplySettings, TargetTriggers
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.hooks import FoundHooks, HookPolicy
from kainite_spark.targets.hooks_report import report
from kainite_spark.targets.opening import open_target
from support.stores import Database

DDL = """
    CREATE TABLE plain (id integer PRIMARY KEY, a integer);
    CREATE TABLE bare (a integer);
    CREATE TABLE hooked (id integer PRIMARY KEY, a integer);
    CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE TRIGGER t AFTER UPDATE ON hooked FOR EACH ROW EXECUTE FUNCTION f();
"""


def invoke(tmp_path: Path, target: str, *arguments: str, more: str = "") -> Result:
    path = tmp_path / "app.properties"
    path.write_text(f"applicationName=app\nregionName=us-east-1\ntarget={target}\n{more}\n")
    return CliRunner().invoke(main, ["apply", "-p", str(path), *arguments])


def shown(tmp_path: Path, target: str, more: str = "") -> tuple[int, Any]:
    result = invoke(tmp_path, target, "--check", "--json", more=more)
    return result.exit_code, json.loads(result.stdout)


def test_tables_that_fold_and_triggers_that_are_refused(postgres: str, tmp_path: Path) -> None:
    Database(postgres).run(DDL)
    code, found = shown(tmp_path, postgres)
    assert (code, found["ok"]) == (1, False)
    why = {line["table"]: line["not_folded"] for line in found["tables"]}
    assert why["plain"] is None
    assert "no primary key" in why["bare"]
    assert "trigger" in why["hooked"]
    assert [hook["name"] for hook in found["refused"]] == ["t"]

    table = invoke(tmp_path, postgres, "--check").stdout
    assert "refused: hooked: CREATE TRIGGER t AFTER UPDATE ON" in table
    assert shown(tmp_path, postgres, "targetTriggerTables=hooked")[0] == 0


def test_what_sqlite_cannot_switch_off_is_refused_as_at_the_start(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'target.db'}"
    with closing(sqlite3.connect(tmp_path / "target.db")) as connection:
        connection.executescript("""
            CREATE TABLE hooked (id integer PRIMARY KEY);
            CREATE TRIGGER t AFTER DELETE ON hooked BEGIN SELECT 1; END;
        """)
    agree(tmp_path, url, "targetTriggers=off: SQLite cannot switch a trigger off", more="targetTriggers=off")
    agree(tmp_path, url, "the target has 1 triggers or rules")
    assert shown(tmp_path, url, "targetTriggers=fire")[0] == 0


def test_what_postgresql_switches_off_is_accepted_and_changed_at_the_start_only(postgres: str, tmp_path: Path) -> None:
    Database(postgres).run(DDL)
    for _ in range(2):
        code, found = shown(tmp_path, postgres, "targetTriggers=off")
        assert (code, found["why_refused"], [hook["name"] for hook in found["refused"]]) == (0, None, ["t"])
    assert "to be switched off: hooked" in invoke(tmp_path, postgres, "--check", more="targetTriggers=off").stdout


def test_a_role_that_may_not_switch_off_is_refused_as_at_the_start(postgres: str, tmp_path: Path) -> None:
    role = f"guest_{conninfo_to_dict(postgres)['dbname']}"
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(DDL)
        admin.execute(f"CREATE ROLE {role} LOGIN; GRANT ALL ON SCHEMA public TO {role}")
        admin.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
    try:
        expected = "targetTriggers=off: the target's role must be owner of public.hooked"
        agree(tmp_path, f"{postgres}&user={role}", expected, more="targetTriggers=off")
    finally:
        with psycopg.connect(postgres, autocommit=True) as admin:
            admin.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


def agree(tmp_path: Path, url: str, expected: str, more: str = "") -> None:
    """Checks that ``--check`` and the start refuse with the same line, which contains ``expected``."""
    code, found = shown(tmp_path, url, more)
    assert (code, found["ok"]) == (1, False)
    assert found["why_refused"] in invoke(tmp_path, url, "--check", more=more).stdout
    triggers = TargetTriggers.OFF if more else TargetTriggers.REFUSE
    with (
        closing(open_target(url, reflect(url), apply=ApplySettings(triggers=triggers))) as target,
        pytest.raises(CatalogueError) as refused,
    ):
        target.prepare("0", reflect(url))
    assert found["why_refused"] == str(refused.value)
    assert expected in str(refused.value)


def test_what_is_off_is_listed_and_switched_on(postgres: str, tmp_path: Path) -> None:
    Database(postgres).run(DDL)
    Database(postgres).run("""
        CREATE TABLE kainite_hooks_off (relation text, kind text, name text, state text, called text, definition text);
        INSERT INTO kainite_hooks_off VALUES ('public.hooked', 'TRIGGER', 't', 'O', 'hooked', 'CREATE TRIGGER t');
        ALTER TABLE hooked DISABLE TRIGGER t
    """)
    code, found = shown(tmp_path, postgres)
    assert (code, found["firing"], [hook["name"] for hook in found["off"]]) == (0, [], ["t"])

    result = invoke(tmp_path, postgres, "--triggers-on")
    assert (result.exit_code, result.stdout.splitlines()) == (
        0, ["on: hooked: CREATE TRIGGER t", "1 triggers and rules were switched on"],
    )  # fmt: skip
    assert Database(postgres).rows("SELECT tgenabled::text FROM pg_trigger WHERE tgname = 't'") == [("O",)]


def test_a_loader_has_no_triggers_to_look_at(tmp_path: Path) -> None:
    assert shown(tmp_path, "exec:cat")[0] == 0
    assert "a loader decides" in invoke(tmp_path, "exec:cat", "--triggers-on").stderr


def test_nothing_folds_where_folding_is_off() -> None:
    assert report(Catalogue({}), FoundHooks(), HookPolicy(), folds=False).ok
