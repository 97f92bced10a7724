"""What attacks with running processes share: an application on a host that other users share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import shared_host


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Gives a folder that every user may enter."""
    with shared_host.open_folder() as folder:
        yield folder


@pytest.fixture
def application(moto_endpoint: str, open_folder: Path) -> dict[str, str]:
    """Gives the settings of an application with a stream of one shard, whose target has one table."""
    return shared_host.application(moto_endpoint, open_folder)
