"""Who waits for locks in a target: what is shown of statements, kinds that cannot be asked, the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kainite.base.errors import SettingsError
from kainite.cli.main import main
from kainite.targets import lock_waits
from kainite.targets.lock_waits import LockHolder, LockWait, first_words, read_lock_waits


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("UPDATE item SET v = 'it''s a secret', w = 17 WHERE id = 4", "UPDATE item SET v = …, w = … WHERE id = …"),
        ("SELECT $1, col2 FROM t\n  WHERE a = E'x\\'y' AND b=1.5e3", "SELECT $…, col2 FROM t WHERE a = E… AND b=…"),
        ("SELECT $tag$ secret $tag$ FROM t", "SELECT … FROM t"),
        ("INSERT INTO t VALUES ('cut off in the mid", "INSERT INTO t VALUES (…"),
        ("SELECT $$ cut off", "SELECT …"),
        ("", ""),
    ],
)
def test_a_statement_is_shown_without_its_values(statement: str, shown: str) -> None:
    assert first_words(statement) == shown


def test_a_long_statement_is_cut() -> None:
    assert len(first_words("SELECT a, " * 100)) == lock_waits.MOST_WORDS


@pytest.mark.parametrize(("target", "kind"), [("sqlite:///x.db", "sqlite"), ("exec:load", "exec")])
def test_a_kind_that_cannot_be_asked_says_so(target: str, kind: str) -> None:
    with pytest.raises(SettingsError, match=f"a {kind} target cannot be asked"):
        read_lock_waits(target)


def test_the_command_shows_each_wait_with_who_is_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = [
        LockWait(7, 12.4, "UPDATE item", (LockHolder(8, "ann, psql", "idle in transaction", 60.0, "UPDATE item"),)),
        LockWait(9, 99.0, "UPDATE other", (LockHolder(3, "bob", None, None, None),)),
    ]
    monkeypatch.setattr("kainite.targets.postgresql.lock_waits.lock_waits", lambda url: tuple(waits))
    file = tmp_path / "app.properties"
    file.write_text("applicationName = orders\ntarget = postgresql://u@h/d\n")
    shown = CliRunner().invoke(main, ["uow", "locks", "-p", str(file)]).stdout
    assert shown == (
        "session 9 of the apply job waits for 99 s: UPDATE other\n"
        "  behind session 3 (bob)\n"
        "session 7 of the apply job waits for 12 s: UPDATE item\n"
        "  behind session 8 (ann, psql), idle in transaction, its transaction is 60 s old, last: UPDATE item\n"
    )
    as_json = CliRunner().invoke(main, ["uow", "locks", "-p", str(file), "--json"]).stdout.splitlines()
    assert [line.startswith('{"pid":') for line in as_json] == [True, True]
    waits.clear()
    assert "waits for no lock" in CliRunner().invoke(main, ["uow", "locks", "-p", str(file)]).stdout
    file.write_text("applicationName = orders\n")
    without = CliRunner().invoke(main, ["uow", "locks", "-p", str(file)])
    assert (without.exit_code, without.stderr.strip()) == (1, "kainite: there is no target to ask: set target")
