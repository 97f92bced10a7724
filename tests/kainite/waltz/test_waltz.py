"""Programs begin with :func:`kainite.waltz.connect`, which tells at once what a settings file lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

import kainite.waltz
from kainite.base.errors import SettingsError
from support.application_world import Ledger


async def test_a_settings_file_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text("streamName=s\n")
    with pytest.raises(SettingsError, match="applicationName is missing"):
        async with kainite.waltz.connect(path, Ledger()):
            pass
