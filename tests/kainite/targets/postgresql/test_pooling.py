"""Connections straight to a server, and through PgBouncer in each of its modes."""

from __future__ import annotations

from contextlib import closing
from functools import partial

import psycopg
import pytest

from kainite.targets.postgresql.connection import connect
from kainite.targets.postgresql.pooling import leads_through_pooler, share_sessions
from support.pgbouncer import pgbouncer


def pooled(url: str) -> bool:
    return leads_through_pooler(partial(connect, url, "test"))


def test_a_server_gives_sessions_of_ones_own(postgres: str) -> None:
    assert not pooled(postgres)


@pytest.mark.parametrize("sessions", [1, 3])
def test_a_pool_of_transactions_is_told(postgres: str, sessions: int) -> None:
    with pgbouncer(postgres, sessions) as url:
        assert pooled(url)


def test_a_pool_of_transactions_is_told_while_another_client_holds_a_session(postgres: str) -> None:
    with pgbouncer(postgres, 2) as url, closing(psycopg.connect(url)) as other:
        other.execute("SELECT")
        assert pooled(url)


def test_a_pool_of_sessions_gives_sessions_of_ones_own(postgres: str) -> None:
    with pgbouncer(postgres, 2, "session") as url:
        assert not pooled(url)


def test_two_servers_whose_processes_have_one_number_are_told_from_a_pool(postgres: str) -> None:
    with closing(connect(postgres, "test")) as one:
        assert not share_sessions(one, one), "the key says that the session is its own"
