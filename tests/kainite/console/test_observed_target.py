"""The targets of an application, each asked about locks beside the others."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from kainite.console.lock_watch import LockWaits
from kainite.console.observed_target import lock_waits, observed_targets
from kainite.settings import load
from support.log_cli import two_targets_settings


def test_several_targets_have_their_kinds_and_tables(tmp_path: Path) -> None:
    found = observed_targets(two_targets_settings(tmp_path))
    assert [(target.name, target.kind, target.tables) for target in found] == [
        ("shop", "SQLite", ()), ("crm", "SQLite", ("contact", "crm.*")),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "kind"),
    [("target = postgresql://u@h/d", "PostgreSQL"), ("target = mysql://u@h/d", "MariaDB or MySQL"),
     ("", "no target is set")],
)  # fmt: skip
def test_an_only_target_has_no_name(tmp_path: Path, line: str, kind: str) -> None:
    file = tmp_path / "one.properties"
    file.write_text(f"applicationName = app\nregionName = us-east-1\n{line}\n")
    (only,) = observed_targets(load(file, needs=("applicationName",)))
    assert (only.name, only.kind, only.tables) == ("", kind, ())


def test_a_target_that_does_not_answer_keeps_no_other_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that both are asked at once: each answers when the other one is asked, too."""
    targets, both = observed_targets(two_targets_settings(tmp_path)), threading.Barrier(2)

    def answered(name: str) -> Any:
        def latest() -> LockWaits:
            both.wait(60)
            return LockWaits(problem=name)

        return latest

    for target in targets:
        monkeypatch.setattr(target, "locks", type("Asked", (), {"latest": staticmethod(answered(target.name))})())
    assert [waits.problem for waits in lock_waits(targets)] == ["shop", "crm"]
