"""The commands that check settings name what they expose, as warnings, and show no secret while they do."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from kainite.base.redaction import forget
from kainite.cli.main import main


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    users = tmp_path / "users"
    users.write_text("ann:daemon:geheimnis\n")
    users.chmod(0o644)
    with closing(sqlite3.connect(tmp_path / "target.db")) as target:
        target.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    path = tmp_path / "app.properties"
    path.write_text(
        f"applicationName=app\nstreamName=s\nexecutableName={sys.executable} --db-pass geheimnis\n"
        f"target=sqlite:///{tmp_path}/target.db\nlogSecretFile=users\nkinesisEndpoint=http://kinesis.internal\n"
        "metricsHost=0.0.0.0\nmetricsPort=9400\n"
    )
    path.chmod(0o644)
    return path


@pytest.mark.parametrize("command", ["run", "apply"])
def test_each_exposure_is_a_warning(properties: Path, command: str, tmp_path: Path) -> None:
    forget()
    environment = {"HOME": str(tmp_path)}
    shown = CliRunner(env=environment).invoke(main, [command, "-p", str(properties), "--check"])
    found = CliRunner(env=environment).invoke(main, [command, "-p", str(properties), "--check", "--json"])
    assert (shown.exit_code, found.exit_code) == (0, 0), shown.output
    exposed = {line["where"] for line in json.loads(found.stdout)["exposed"]}
    assert exposed == {
        str(properties),
        str(tmp_path / "users"),
        "executableName",
        "kinesisEndpoint http://kinesis.internal",
        "metricsPort 9400 on metricsHost 0.0.0.0",
    }
    assert shown.output.count("exposed: ") == len(exposed)
    assert f"chmod 600 {tmp_path / 'users'}" in shown.output
    assert "geheimnis" not in shown.output + found.output
