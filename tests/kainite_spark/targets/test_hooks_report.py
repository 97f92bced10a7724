"""``kainite apply --check`` and ``--triggers-on``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kainite.cli.main import main
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.hooks import FoundHooks, HookPolicy
from kainite_spark.targets.hooks_report import report
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
