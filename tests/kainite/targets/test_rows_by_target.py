"""Each delta's row is asked of the target that has the delta's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.settings import load
from kainite.targets import rows_by_target
from kainite.targets.present_row import PresentRow
from kainite.targets.rows_by_target import RowsInTarget, rows_in_targets
from support.log_cli import two_targets_settings

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


def test_an_only_target_has_all(tmp_path: Path) -> None:
    file = tmp_path / "one.properties"
    file.write_text("applicationName = app\nregionName = us-east-1\n")
    (only,) = rows_in_targets(load(file, needs=("applicationName",)), DELTAS)
    assert (only.target, only.places, only.rows, only.problem) == (
        "", (0, 1, 2, 3), (), "there is no target to ask: set target",
    )  # fmt: skip
