"""Moments as a form sends them: UTC, unless they name a zone."""

from __future__ import annotations

from datetime import UTC, datetime


def moment_s(text: str) -> float | None:
    """Returns a moment in seconds since the epoch; None for what is none."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def moment_ms(text: str) -> int | None:
    """Returns a moment in milliseconds since the epoch; None for what is none."""
    at = moment_s(text)
    return None if at is None else int(1000 * at)
