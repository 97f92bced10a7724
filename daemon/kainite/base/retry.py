"""Retries with exponential backoff."""

from __future__ import annotations

import random

BACKOFF_BASE_S = 0.2
BACKOFF_CAP_S = 20.0


def backoff(failures: int) -> float:
    """Seconds to wait after ``failures`` in a row (from 1): exponential, half of it random."""
    longest = min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2.0 ** min(failures - 1, 30))
    return longest * random.uniform(0.5, 1.0)
