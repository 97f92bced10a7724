"""``kainite demo --servers``: the servers answer when the file is there, and leave nothing when they are ended."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kainite.cli.main import main
from support.waiting import eventually

LIMIT = 60.0


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not pytest's folder: its path is too long for the sockets of PostgreSQL.
    path = Path(tempfile.mkdtemp(prefix="ks-"))
    yield path
    shutil.rmtree(path)


def shell(folder: Path, commands: str) -> str:
    """Returns what a shell prints that has read the file."""
    script = f". ./servers.env; {commands}"
    ran = subprocess.run(["sh", "-euc", script], cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_servers_answer_once_the_file_is_there_and_leave_nothing(folder: Path) -> None:
    command = [sys.executable, "-m", "kainite", "demo", "--servers", "servers.env"]
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)}
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as servers:
        try:
            eventually(lambda: (folder / "servers.env").exists() or servers.poll() is not None, limit=LIMIT)
            assert shell(folder, 'psql "$SOURCE" -Atc "SHOW wal_level"') == "logical\n"
            assert shell(folder, 'psql "$TARGET" -Atc "SELECT 1"; pg_dump --version').startswith("1\npg_dump")
            streams = "import boto3; print(boto3.client('kinesis').list_streams()['StreamNames'])"
            assert shell(folder, f'{sys.executable} -c "{streams}"') == "[]\n"
        finally:
            servers.terminate()
        _, said = servers.communicate(timeout=LIMIT)
    assert said.startswith("kainite: the servers run until Ctrl-C; in another terminal: . ./servers.env\n")
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_not_there_is_told_before_a_server_starts(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["demo", "--servers", str(tmp_path / "none/servers.env")])

    assert result.exit_code == 1
    assert f"there is no folder {tmp_path / 'none'}" in result.stderr


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "servers.env"
    file.write_text("mine")

    result = CliRunner().invoke(main, ["demo", "--servers", str(file)])

    assert result.exit_code == 1
    assert "is there already" in result.stderr
    assert file.read_text() == "mine"
