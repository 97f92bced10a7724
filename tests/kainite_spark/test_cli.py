"""``kainite apply``: its errors before Spark starts. ``end_to_end/test_apply_kills.py`` tests the rest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from kainite.cli.main import main

LEAST = "applicationName=app\nstreamName=s\nexecutableName=x\nregionName=us-east-1\n"


def apply(tmp_path: Path, lines: Sequence[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command as a process: it begins to start Spark, of which a process has one at a time."""
    path = tmp_path / "app.properties"
    path.write_text(LEAST + "".join(f"{line}\n" for line in lines))
    command = [sys.executable, "-m", "kainite", "apply", "-p", str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), "target is missing"),
        (("target=sqlite:////nonexistent/folder/target.db",), "does not exist"),
        (("onUowFailure=perhaps",), "onUowFailure"),
        (("target=exec:/nonexistent/loader x",), "target: there is no program '/nonexistent/loader'"),
        (("target=exec:",), "target: the command line names no program"),
        (("target=exec:cat", "precedenceFile=none.txt"), "none.txt"),
    ],
)
def test_what_cannot_work_is_told_in_one_line(tmp_path: Path, lines: tuple[str, ...], message: str) -> None:
    result = apply(tmp_path, lines, "--once")

    assert result.returncode == 1
    assert message in result.stderr
    assert result.stderr.startswith("kainite: ")
    assert len(result.stderr.splitlines()) == 1


def test_help_shows_examples() -> None:
    result = CliRunner().invoke(main, ["apply", "--help"])

    assert "kainite apply -p app.properties" in result.stdout


TOGETHER = ("target.a=postgresql://u@127.0.0.1:1/a", "target.b=postgresql://u@127.0.0.1:1/b", "target.b.tables=t")


@pytest.mark.parametrize(
    ("lines", "arguments", "message"),
    [
        ((*TOGETHER, "targetCommit=atomic"), ("--once", "--target", "a"), "one apply job serves all targets"),
        (
            (*TOGETHER, "targetCommit=together"),
            ("--once", "--target", "a"),
            "targetCommit=together one apply job serves",
        ),
        ((*TOGETHER, "targetCommit=together"), ("resolve",), "targetCommit is not atomic"),
        ((*TOGETHER, "targetCommit=atomic"), ("--check",), "say which one by --target (a, b)"),
        (TOGETHER, ("resolve",), "say which one by --target (a, b)"),
        (TOGETHER, ("resolve", "--target", "a"), "targetCommit is not atomic"),
        ((*TOGETHER, "targetCommit=atomic"), ("--by-log",), "kainite apply resolve --by-log"),
        (("target=sqlite:///x.db",), ("resolve",), "targetCommit is not atomic"),
        ((*TOGETHER, "targetCommit=atomic", "target.c=exec:cat", "target.c.tables=u"), ("--once",), "of the kind exec"),
    ],
)
def test_what_targets_that_commit_together_need_is_told(
    tmp_path: Path, lines: tuple[str, ...], arguments: tuple[str, ...], message: str
) -> None:
    result = apply(tmp_path, lines, *arguments)
    assert result.returncode == 1
    assert message in result.stderr
