"""A target of each kind that is compared, and sessions with it in which both kinds take the same statements."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final

import pytest

from kainite.replicate.load_target import load_session
from kainite.replicate.verify_ledger import VerifySession, changed_rows, first_row, statements_for

KINDS: Final = ("postgres", "mariadb")
"""The fixtures that give an empty database of each kind."""


def session_of(url: str) -> AbstractContextManager[VerifySession]:
    """Opens a session with a target, in autocommit mode."""
    return load_session(url, "a test")


def target_of(kind: str, request: pytest.FixtureRequest) -> str:
    """Returns the address of an empty database of a kind, with the table of the apply job's fence."""
    url = str(request.getfixturevalue(kind))
    with session_of(url) as session:
        run(session, "CREATE TABLE kainite_fence (log_partition varchar(255), generation bigint, micro_batch bigint)")
    return url


def run(session: VerifySession, statement: str, *values: object) -> int:
    """Executes a statement; returns how many rows it has met."""
    return changed_rows(session, statement, *values)


def seen(session: VerifySession, log_partition: str, request: int) -> Any:
    """Returns the row that a snapshot of now would show of a request that has stopped the job; None without one."""
    return first_row(session, statements_for(session).see, log_partition, request)
