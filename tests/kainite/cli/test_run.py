"""``kainite run`` as it is called; what the daemon does has tests of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kainite.cli.main import main

GOOD = f"applicationName=app\nstreamName=orders\nexecutableName={sys.executable} -m child\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "app.properties"
    path.write_text(GOOD)
    return path


@pytest.mark.parametrize("option", ["--json", "--all"])
def test_what_shapes_a_check_needs_a_check(file: Path, option: str) -> None:
    result = CliRunner().invoke(main, ["run", "-p", str(file), option])

    assert result.exit_code == 2
    assert "--json and --all go with --check" in result.stderr


@pytest.mark.parametrize("words", [["-p", "{file}"], ["{file}"], ["{file}", "--stream-name", "orders"]])
def test_a_check_takes_its_file_as_kcl_does_or_behind_an_option(file: Path, words: list[str]) -> None:
    result = CliRunner().invoke(main, ["run", *(word.format(file=file) for word in words), "--check"])

    assert result.exit_code == 0, result.output
    assert "orders" in result.stdout


def test_wrong_settings_end_the_start_with_one_line(file: Path) -> None:
    result = CliRunner().invoke(main, ["run", "-p", str(file), "--max-records", "none"])

    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "maxRecords" in result.stderr
