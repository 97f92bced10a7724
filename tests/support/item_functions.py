"""Functions on items, which processes of a test import."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from support.waiting import eventually


def quotients(dividend: int, divisors: Iterator[int]) -> Iterator[float]:
    for divisor in divisors:
        yield dividend / divisor


def held(folder: str, items: Iterator[int]) -> Iterator[int]:
    """Yields items; of each it writes its process to ``begun-N``, and waits for ``go-N``."""
    for item in items:
        written = Path(folder) / f"written-{item}"
        written.write_text(str(os.getpid()))
        written.rename(Path(folder) / f"begun-{item}")
        eventually((Path(folder) / f"go-{item}").exists, 120)
        yield item
