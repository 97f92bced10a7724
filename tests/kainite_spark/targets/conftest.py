"""Fixtures of tests of targets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.preparing_postgres import two_servers


@pytest.fixture(scope="session")
def preparing_servers() -> Iterator[tuple[str, str]]:
    """Gives the URLs of the maintenance databases of two PostgreSQL servers that prepare transactions."""
    with two_servers() as found:
        yield found
