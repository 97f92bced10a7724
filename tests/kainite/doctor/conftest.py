"""Gives an application of which all is there: stream, tables, target, program; on moto and SQLite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.doctored import DoctoredFile


@pytest.fixture
def doctored(moto_endpoint: str, dynamodb: Any, kinesis: Any, tmp_path: Path) -> DoctoredFile:
    file = DoctoredFile(moto_endpoint, dynamodb, kinesis, tmp_path)
    file.make()
    return file
