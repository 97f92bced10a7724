"""How a PostgreSQL target is written: ``postgresql://user:password@host:port/database?name=value``. Pure."""

from __future__ import annotations

from pathlib import Path

from kainite.base.redaction import redacted_url, secrets_in_url
from kainite.settings.kinds.target_kinds import TargetAddress
from kainite.settings.kinds.target_url import problem_of_database_url


def libpq_url(url: str) -> str:
    """Returns the address with the one spelling of its scheme that libpq and every reader know."""
    return f"postgresql://{url.partition('://')[2]}"


def _parse(text: str, folder: Path) -> str:
    if problem := problem_of_database_url(text):
        raise ValueError(problem)
    return libpq_url(text)


ADDRESS = TargetAddress(_parse, redacted_url, secrets_in_url)
