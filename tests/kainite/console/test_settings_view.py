"""The settings in force, and what the file has by now."""

from __future__ import annotations

from pathlib import Path

from kainite.console.settings_view import settings_view
from kainite.settings import load

TEXT = "applicationName = app\nregionName = us-east-1\ntarget = postgresql://u:geheim@h/d\nconsoleOperators = ada\n"


def test_a_changed_file_tells_what_would_change_and_when(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text(TEXT)
    running = load(path, needs=("applicationName",))
    before = settings_view(path, running)
    assert (before.changed, before.problem) == ((), "")
    shown = {row.key: (row.value, row.origin) for row in before.rows}
    assert shown["consoleOperators"] == ("ada", "file")
    assert "geheim" not in repr(before)
    path.write_text(TEXT.replace("ada", "ada, eve"))
    assert settings_view(path, running).changed == (("consoleOperators", "when the daemon is started again"),)
    path.write_text(TEXT + "maxRecords = many\n")
    assert "maxRecords" in settings_view(path, running).problem
    path.unlink()
    assert str(path) in settings_view(path, running).problem
