"""Kills of the driver of a table's own load, within the test's process, at each of its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kainite.replicate import mariadb_table_load
from kainite.replicate.mariadb_foreign_keys import NotedForeignKey
from kainite.replicate.mariadb_load_ledger import MariadbLoadLedger
from kainite.replicate.mariadb_table_load import MariadbTableLoad
from kainite.replicate.table_load import TableLoad
from kainite_spark.load.table_job import TableLoadJob
from kainite_spark.targets.mariadb.session import MariadbSession
from kainite_spark.targets.postgresql.session import PostgresSession


class KilledError(Exception):
    """The driver was killed."""


def kills() -> dict[str, Callable[[pytest.MonkeyPatch], None]]:
    """Returns what kills the driver of a load into PostgreSQL at each step, once."""
    return _kills(TableLoad, PostgresSession)


def kills_into_mariadb() -> dict[str, Callable[[pytest.MonkeyPatch], None]]:
    """Returns what kills the driver of a load into MariaDB at each step, once."""
    return {
        "before foreign keys are dropped": _at(MariadbTableLoad, "begin", after=False),
        "with foreign keys dropped": _at(mariadb_table_load, "take_off", after=True),
        "before the table is emptied": _at(MariadbLoadLedger, "truncate", after=False),
        "with the table emptied": _at(MariadbLoadLedger, "truncate", after=True),
        **_kills(MariadbTableLoad, MariadbSession),
        "with foreign keys made": _at(NotedForeignKey, "orphans", after=False),
    }


def _kills(load: type, session: type) -> dict[str, Callable[[pytest.MonkeyPatch], None]]:
    return {
        "after begin": _at(load, "begin", after=True),
        "after plan": _at(load, "plan", after=True),
        "after the copy": _at(TableLoadJob, "_copy", after=True),
        "before a batch": _at(session, "catch_up", after=False),
        "after a batch": _at(session, "catch_up", after=True),
        "with the fence locked": _at(load, "go_live", after=False),
        "before foreign keys": _at(TableLoadJob, "_catch_up", after=True),
    }


def _at(owner: Any, name: str, *, after: bool) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        kept = getattr(owner, name)

        def killed(*values: Any, **named: Any) -> Any:
            monkeypatch.setattr(owner, name, kept)
            if after:
                kept(*values, **named)
            raise KilledError

        monkeypatch.setattr(owner, name, killed)

    return patch
