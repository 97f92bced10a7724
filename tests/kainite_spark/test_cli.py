"""``kainite apply``: its errors before Spark starts. ``end_to_end/test_apply_kills.py`` tests the rest."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kainite.cli.main import main

LEAST = "applicationName=app\nstreamName=s\nexecutableName=x\nregionName=us-east-1\n"


@pytest.fixture(autouse=True)
def _spark_has_ended() -> Iterator[None]:
    """Waits until the Spark that a test began has ended: a process has one at a time, and it changes the umask."""
    before = set(threading.enumerate())
    yield
    for each in set(threading.enumerate()) - before:
        if each.name == "spark":
            each.join(60)
            assert not each.is_alive()


def invoke(tmp_path: Path, *lines: str) -> Result:
    path = tmp_path / "app.properties"
    path.write_text(LEAST + "".join(f"{line}\n" for line in lines))
    return CliRunner().invoke(main, ["apply", "-p", str(path), "--once"])


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
    result = invoke(tmp_path, *lines)

    assert result.exit_code == 1
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
    path = tmp_path / "app.properties"
    path.write_text(LEAST + "".join(f"{line}\n" for line in lines))
    result = CliRunner().invoke(main, ["apply", "-p", str(path), *arguments])
    assert result.exit_code == 1
    assert message in result.stderr
