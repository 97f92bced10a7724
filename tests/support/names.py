"""Unique names for streams, tables and databases, across all tests and processes."""

from __future__ import annotations

import itertools
import os

_numbers = itertools.count()


def unique(prefix: str) -> str:
    """Returns a name that no other test uses."""
    return f"{prefix}-{os.getpid()}-{next(_numbers)}"
