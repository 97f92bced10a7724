"""The target's rows beside deltas: who is asked for what, and how a row is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kainite.cli import uow_target
from kainite.cli.uow_target import rows_beside, shown
from kainite.settings import load
from kainite.targets.present_row import PresentRow, RowAsked


def test_deltas_without_a_key_are_not_asked_for_and_keep_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "app.properties"
    file.write_text("applicationName = orders\ntarget = postgresql://u@127.0.0.1/d\n")

    def found(target: str, asked: Sequence[RowAsked]) -> tuple[PresentRow | None, ...]:
        return tuple({"id": str(one.key["id"])} for one in asked)

    monkeypatch.setattr(uow_target, "read_present_rows", found)
    deltas = [{"table": "t", "row": {"id": 1}}, *({"table": "t", "key": {"id": number}} for number in range(200))]
    rows = rows_beside(load(file, needs=("applicationName",)), deltas)
    assert (rows[:2], len(rows)) == ([None, {"id": "0"}], uow_target.MOST_LOOKED_FOR)


def test_a_row_is_one_line() -> None:
    assert shown({"id": "1", "v": None}) == '    in the target: {"id":"1","v":null}'
    assert shown(None) == "    in the target: no such row"
