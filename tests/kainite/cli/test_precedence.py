from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kainite.cli.main import main
from kainite.uow.catalogue.file import read_catalogue

NEEDED = "applicationName = shop\nstreamName = shop\nexecutableName = cat\nregionName = eu-west-1\n"


def precedence(folder: Path, settings: str, *options: str) -> Result:
    path = folder / "app.properties"
    path.write_text(NEEDED + settings)
    return CliRunner().invoke(main, ["precedence", "-p", str(path), *options])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pairs").write_text("country customer\ncustomer orders\n")
    with closing(sqlite3.connect(tmp_path / "target.db")) as connection:
        connection.executescript("""
            CREATE TABLE parent (id INTEGER PRIMARY KEY);
            CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent);
        """)
    return tmp_path


def test_the_map_as_json_from_a_file_of_pairs(folder: Path) -> None:
    result = precedence(folder, "precedenceFile = pairs\n", "--format", "json")
    assert json.loads(result.stdout) == {"country": 1, "customer": 2, "orders": 3}


def test_a_table_from_the_target(folder: Path) -> None:
    result = precedence(folder, "target = sqlite:///target.db\n")
    lines = [line for line in result.stdout.splitlines() if "│" in line]
    assert [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines] == [
        ["1", "parent", "", "child"],
        ["2", "child", "parent", ""],
    ]


def test_mermaid(folder: Path) -> None:
    result = precedence(folder, "precedenceFile = pairs\n", "--format", "mermaid")
    assert result.stdout.startswith("flowchart TD\n")


def test_write_reads_the_target_whatever_else_is_set(folder: Path) -> None:
    written = folder / "catalogue.json"
    settings = "target = sqlite:///target.db\nprecedenceFile = pairs\ncatalogueFile = catalogue.json\n"
    result = precedence(folder, settings, "--write", str(written), "--format", "json")
    assert json.loads(result.stdout) == {"parent": 1, "child": 2}
    assert set(read_catalogue(written).tables) == {"parent", "child"}
    again = precedence(folder, "catalogueFile = catalogue.json\n", "--format", "json")
    assert again.stdout == result.stdout


@pytest.mark.parametrize(
    ("settings", "options", "cause"),
    [
        ("", [], "set 'target', 'catalogueFile' or 'precedenceFile'"),
        ("precedenceFile = pairs\n", ["--write", "c.json"], "'target' is no database"),
        ("target = exec:cat\n", [], "set 'target', 'catalogueFile' or 'precedenceFile'"),
        ("target = exec:cat\n", ["--write", "c.json"], "'target' is no database"),
        ("target = sqlite:///gone.db\n", [], "does not exist"),
    ],
)
def test_what_is_missing_is_one_line(folder: Path, settings: str, options: list[str], cause: str) -> None:
    result = precedence(folder, settings, *options)
    assert result.exit_code == 1
    assert cause in result.stderr
    assert result.stderr.count("\n") == 1
