"""Gives the tests of the extractor for MariaDB a source database each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.mariadb_source import source_database


@pytest.fixture
def database(mariadb_source_server: str) -> Iterator[str]:
    with source_database(mariadb_source_server) as url:
        yield url
