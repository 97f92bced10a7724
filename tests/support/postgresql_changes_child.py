"""The record processor of PostgreSQL's changes as a child, and changes for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.processor_child import Child

UNIT = {"uow": "pg-7-0/1", "number": 3, "count": 1}


def change(operation: str, key: dict[str, Any], new: dict[str, Any], types: dict[str, int]) -> dict[str, Any]:
    return {
        **UNIT,
        "ordinal": 0,
        "relation": "public.t",
        "operation": operation,
        "types": types,
        "key": key,
        "new": new,
    }


@pytest.fixture
def child() -> Iterator[Child]:
    child = Child("postgresql_changes")
    child.initialize()
    yield child
    child.close()
