"""Gives the tests a source database of their own, and closes the connections that their steps have left open."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kainite_spark.load.tasks import close_sessions
from support.postgresql_source import source

__all__ = ["source"]


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_sessions()
