"""Kills of the driver of a table's own load, within the test's process, at each of its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kainite.replicate.table_load import TableLoad
from kainite_spark.load.table_job import TableLoadJob
from kainite_spark.targets.postgresql.session import PostgresSession


class KilledError(Exception):
    """The driver was killed."""


def kills() -> dict[str, Callable[[pytest.MonkeyPatch], None]]:
    """Returns what kills the driver at each step, once."""

    def at(owner: type, name: str, *, after: bool) -> Callable[[pytest.MonkeyPatch], None]:
        def patch(monkeypatch: pytest.MonkeyPatch) -> None:
            kept = getattr(owner, name)

            def killed(*values: Any, **named: Any) -> Any:
                monkeypatch.setattr(owner, name, kept)
                if after:
                    kept(*values, **named)
                raise KilledError

            monkeypatch.setattr(owner, name, killed)

        return patch

    return {
        "after begin": at(TableLoad, "begin", after=True),
        "after plan": at(TableLoad, "plan", after=True),
        "after the copy": at(TableLoadJob, "_copy", after=True),
        "before a batch": at(PostgresSession, "catch_up", after=False),
        "after a batch": at(PostgresSession, "catch_up", after=True),
        "with the fence locked": at(TableLoad, "go_live", after=False),
        "before foreign keys": at(TableLoadJob, "_catch_up", after=True),
    }
