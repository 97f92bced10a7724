"""``kainite run --check``: what it says, and its exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kainite.cli.main import main

GOOD = f"applicationName=app\nstreamName=orders\nexecutableName={sys.executable} -m child\n"


def check(folder: Path, properties: str, *options: str) -> Result:
    path = folder / "app.properties"
    path.write_text(properties)
    return CliRunner().invoke(main, ["run", "-p", str(path), "--check", *options])


def check_json(folder: Path, properties: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(check(folder, properties, "--json").stdout)
    return answer


def test_a_sound_file_shows_each_value_and_where_it_is_from(tmp_path: Path) -> None:
    answer = check_json(tmp_path, GOOD + "maxRecords=500\n")

    lines = {line["key"]: line for line in answer["settings"]}
    assert answer["ok"]
    assert (lines["maxRecords"]["value"], lines["maxRecords"]["origin"]) == ("500", "file")
    assert (lines["failoverTimeMillis"]["value"], lines["failoverTimeMillis"]["origin"]) == ("10000", "default")


def test_a_sound_file_ends_with_zero_even_with_unknown_keys(tmp_path: Path) -> None:
    result = check(tmp_path, GOOD + "maxRecrods=5\nmaxActiveThreads=4\n")

    assert result.exit_code == 0
    assert "unknown: maxRecrods, did you mean maxRecords?" in result.stdout
    assert "without effect: maxActiveThreads" in result.stdout


def test_a_wrong_file_ends_with_one_and_still_shows_what_is_set(tmp_path: Path) -> None:
    result = check(tmp_path, GOOD.replace("orders", "") + "maxRecords=many\n")
    answer = check_json(tmp_path, GOOD + "maxRecords=many\n")

    assert result.exit_code == 1
    assert "wrong: maxRecords: must be a whole number" in result.stdout
    assert "wrong: streamName is missing" in result.stdout
    assert not answer["ok"]
    assert "maxRecords" not in {line["key"] for line in answer["settings"]}
    assert {"applicationName", "streamName"} <= {line["key"] for line in answer["settings"]}


def test_a_program_that_is_not_there_is_wrong(tmp_path: Path) -> None:
    result = check(tmp_path, GOOD.replace(sys.executable, "/no/such/program"))

    assert result.exit_code == 1
    assert "there is no program '/no/such/program'" in result.stdout


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    for options in ((), ("--json",)):
        result = check(tmp_path, GOOD + "target=postgresql://u:geheim@h/d\n", *options)
        assert "postgresql://u:***@h/d" in result.stdout
        assert "geheim" not in result.output


def test_each_value_says_where_it_stands(tmp_path: Path) -> None:
    options = ("--max-records", "5", "--json")
    answer = json.loads(check(tmp_path, GOOD, *options).stdout)

    origins = {line["key"]: line["origin"] for line in answer["settings"]}
    assert (origins["maxRecords"], origins["streamName"], origins["tableName"]) == ("command line", "file", "default")


def test_warnings_and_notes_are_shown_and_nothing_to_mend(tmp_path: Path) -> None:
    result = check(tmp_path, GOOD + "shutdownGraceMillis=0\n")

    assert result.exit_code == 0
    assert "warning: shutdownGraceMillis: 0 gives children no time" in result.stdout
    assert "note: retrievalMode: DEFAULT is fan-out with kainite[fanout]" in result.stdout


def test_keys_of_credentials_are_not_shown(tmp_path: Path) -> None:
    for options in ((), ("--json",)):
        result = check(tmp_path, GOOD + "AwsCredentialsProvider=StaticCredentialsProvider|AKIA|geheim\n", *options)
        assert "StaticCredentialsProvider|***|***" in result.stdout
        assert "geheim" not in result.output


def test_a_file_is_not_needed_when_nothing_is_missing() -> None:
    words = ["--application-name=app", "--stream-name", "s", "--executable-name", f"{sys.executable} -m x"]
    result = CliRunner().invoke(main, ["run", *words, "--check"])

    assert result.exit_code == 0
    assert "settings from the environment and the command line: nothing is wrong" in result.stdout


def test_an_unknown_option_names_the_nearest_one(tmp_path: Path) -> None:
    result = check(tmp_path, GOOD, "--max-recrods", "5")

    assert result.exit_code == 2
    assert "did you mean --max-records?" in result.stderr


def test_only_what_is_set_is_shown_unless_all_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text("applicationName = app\nstreamName = orders\nexecutableName = true\n")
    brief = CliRunner().invoke(main, ["run", "-p", str(path), "--check"]).stdout
    whole = CliRunner().invoke(main, ["run", "-p", str(path), "--check", "--all"]).stdout
    assert "streamName" in brief
    assert "failoverTimeMillis" not in brief
    assert "more keys have their defaults: --all shows them" in brief
    assert "failoverTimeMillis" in whole
    assert len(brief.splitlines()) < 15 < len(whole.splitlines())
