"""Gives the tests of duties' programs the file that such a program writes."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "duty.log"
