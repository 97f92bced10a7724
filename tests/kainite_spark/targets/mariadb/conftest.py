"""Gives the tests of targets on MariaDB the database of each test, and the stores in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.stores import Database, Stores


@pytest.fixture
def stores(mariadb: str) -> Iterator[Stores]:
    opened = Stores(Database(mariadb))
    yield opened
    opened.close()
