"""How the target's row is shown below a delta."""

from __future__ import annotations

from kainite.cli.uow_target import shown


def test_a_row_is_one_line() -> None:
    assert shown({"id": "1", "v": None}) == '    in the target: {"id":"1","v":null}'
    assert shown(None) == "    in the target: no such row"
