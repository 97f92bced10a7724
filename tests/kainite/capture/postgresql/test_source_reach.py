"""A source is away when its server takes no connections, and not when it refuses this one."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.postgresql.source_reach import CONNECT_S, is_away, reached_by


@pytest.mark.parametrize(
    ("url", "away"),
    [
        ("postgresql:///?host=/nonexistent", True),
        ("postgresql://127.0.0.1:1/shop", True),  # tcpmux: nobody listens there
        ("postgresql://[x", False),
    ],
)
def test_a_server_that_nobody_reaches_is_away_and_a_wrong_url_is_not(url: str, away: bool) -> None:
    assert is_away(url) is away


def test_a_server_that_refuses_the_user_or_the_database_is_there(source: SourceSlot) -> None:
    for other in ({}, {"dbname": "no_such_database"}, {"user": "no_such_user"}):
        assert not is_away(make_conninfo(source.url, **other))


def test_a_host_that_answers_nothing_is_given_up_in_time_unless_somebody_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    assert conninfo_to_dict(reached_by("postgresql://h/d", user="u"))["connect_timeout"] == str(CONNECT_S)
    assert conninfo_to_dict(reached_by("postgresql://h/d?connect_timeout=3"))["connect_timeout"] == "3"
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "4")
    assert "connect_timeout" not in conninfo_to_dict(reached_by("postgresql://h/d"))
