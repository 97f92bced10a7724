"""``kainite uow locks``: each wait with who is before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kainite.cli.main import main
from kainite.targets.lock_waits import LockHolder, LockWait


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
