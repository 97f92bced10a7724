"""``kainite console`` as a person calls it, with wrong input too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from kainite.cli.main import main
from kainite.console.secrets import read_hashed_secrets


def test_a_user_is_added_by_a_line_that_reads_back(tmp_path: Path) -> None:
    made = CliRunner().invoke(main, ["console", "--add-user", "ada"], input="correct horse\ncorrect horse\n")
    path = tmp_path / "users"
    path.write_text(made.stdout)
    path.chmod(0o600)
    assert list(read_hashed_secrets(path)) == ["ada"]
    assert "correct horse" not in made.output
    short = CliRunner().invoke(main, ["console", "--add-user", "ada"], input="x\nx\n")
    assert (short.exit_code, "fewer than 12 characters" in short.stderr) == (1, True)


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    missing = CliRunner().invoke(main, ["console", "-p", str(tmp_path / "no.properties")])
    assert (missing.exit_code, missing.stderr.count("\n")) == (1, 1)
    assert CliRunner().invoke(main, ["console"]).exit_code == 2
    assert CliRunner().invoke(main, ["console", "-p", "x", "--listen", "here"]).exit_code == 2
    path = tmp_path / "app.properties"
    path.write_text("applicationName = app\n")
    beyond = CliRunner().invoke(main, ["console", "-p", str(path), "--listen", "0.0.0.0:1"])
    assert (beyond.exit_code, "in plain text" in beyond.stderr) == (1, True)


def test_a_missing_extra_is_one_line_and_no_other_command_needs_it(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text("applicationName = app\nregionName = us-east-1\n")
    hidden = (
        "import sys\nfor name in ('starlette', 'uvicorn', 'jinja2'): sys.modules[name] = None\n"
        "from kainite.cli.main import main\nmain(sys.argv[1:])\n"
    )
    called = [sys.executable, "-c", hidden]
    missing = subprocess.run(
        [*called, "console", "-p", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)
    assert "pip install 'kainite[console]'" in missing.stderr
    assert _run(hidden, "--help").returncode == 0


def _run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, "console", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
