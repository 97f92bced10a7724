"""What an extractor makes of TRUNCATE, which names no rows."""

from __future__ import annotations

from enum import StrEnum


class OnTruncate(StrEnum):
    """What TRUNCATE of a table that is read does."""

    FAIL = "fail"
    SKIP = "skip"
    APPLY = "apply"
