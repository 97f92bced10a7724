"""Names for streams, tables and databases: no two tests, in this process or another, use the same."""

from __future__ import annotations

import itertools
import os

_numbers = itertools.count()


def unique(prefix: str) -> str:
    """A name that no other test uses."""
    return f"{prefix}-{os.getpid()}-{next(_numbers)}"
