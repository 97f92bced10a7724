"""Each delta's row is asked of the target that has the delta's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.cli.uow_target import look_beside
from kainite.settings import load
from kainite.targets import rows_by_target
from kainite.targets.present_row import PresentRow
from kainite.targets.rows_by_target import RowsInTarget, rows_in_targets
from support.log_cli import two_atomic_targets, two_targets_settings

DELTAS = [{"table": table, "key": {"id": 1}} for table in ("contact", "item", "crm.visit", "other")]


def answer(target: str | None, deltas: Sequence[Mapping[str, Any]]) -> list[PresentRow | None]:
    assert target is not None
    if target.endswith("shop.db"):
        raise TargetUnavailableError("the shop is closed")
    return [{"table": delta["table"]} for delta in deltas]


def test_a_target_that_is_away_keeps_no_row_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_by_target, "rows_beside", answer)
    assert rows_in_targets(two_targets_settings(tmp_path), DELTAS) == [
        RowsInTarget("shop", (1, 3), problem="the shop is closed"),
        RowsInTarget("crm", (0, 2), ({"table": "contact"}, {"table": "crm.visit"})),
    ]


def test_targets_that_commit_together_are_asked_each_for_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows a delta's row is looked for in the target that has its table, also where units have no parts."""
    file = tmp_path / "atomic.properties"
    targets = two_atomic_targets("postgresql://127.0.0.1:1/shop.db", "postgresql://127.0.0.1:1/crm.db")
    file.write_text(f"applicationName = app\nregionName = us-east-1\n{targets}")
    settings = load(file, needs=("applicationName",))
    monkeypatch.setattr(rows_by_target, "rows_beside", answer)
    assert rows_in_targets(settings, DELTAS) == [
        RowsInTarget("shop", (1, 3), problem="the shop is closed"),
        RowsInTarget("crm", (0, 2), ({"table": "contact"}, {"table": "crm.visit"})),
    ]
    assert look_beside(settings, DELTAS).targets == ["crm", "shop", "crm", "shop"]


def test_an_only_target_has_all(tmp_path: Path) -> None:
    file = tmp_path / "one.properties"
    file.write_text("applicationName = app\nregionName = us-east-1\n")
    (only,) = rows_in_targets(load(file, needs=("applicationName",)), DELTAS)
    assert (only.target, only.places, only.rows, only.problem) == (
        "", (0, 1, 2, 3), (), "there is no target to ask: set target",
    )  # fmt: skip
