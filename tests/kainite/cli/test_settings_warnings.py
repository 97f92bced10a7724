"""What a command that goes on says of its settings when it starts."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kainite.cli.settings_warnings import tell_warnings
from kainite.settings import load


def test_each_warning_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "app.properties"
    path.write_text("applicationName=app\napplyMaxUnits=7\nshutdownGraceMillis=0\n")
    settings = load(path, needs=("applicationName",))

    tell_warnings(settings)

    told = [(record.levelno, record.kainite_fields["setting"]) for record in caplog.records]  # type: ignore[attr-defined]
    assert told == [(logging.WARNING, warning) for warning in settings.warnings]
    assert (logging.WARNING, "applyMaxUnits is a constant now (4000); remove it") in told
