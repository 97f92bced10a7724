from __future__ import annotations

import traceback

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from kainite.targets.postgresql.connection import connect


def test_a_connection_is_named_and_notices_a_silent_network(postgres: str) -> None:
    with connect(postgres, "a test") as connection:
        assert connection.autocommit
        assert connection.execute("SELECT current_setting('application_name')").fetchone() == ("a test",)
        found = conninfo_to_dict(connection.info.dsn)
        assert (found["keepalives_idle"], found["tcp_user_timeout"]) == ("20", "40000")


def test_what_the_address_says_of_the_network_wins(postgres: str) -> None:
    with connect(f"{postgres}&keepalives_idle=7", "a test") as connection:
        assert conninfo_to_dict(connection.info.dsn)["keepalives_idle"] == "7"


def test_a_server_that_does_not_answer_is_the_drivers_error() -> None:
    with pytest.raises(psycopg.OperationalError):
        connect("postgresql://127.0.0.1:1/d", "a test")


def test_texts_go_as_utf8_whatever_the_environment_says(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with connect(f"{postgres}&client_encoding=LATIN1", "a test") as connection:
        assert connection.execute("SHOW client_encoding").fetchone() == ("UTF8",)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:Tr0ub%zzador@127.0.0.1:1/d",
        "postgresql://u@127.0.0.1:1/d?password=Tr0ub%zzador",
        "postgresql://u:Tr0ub%zzador@[127.0.0.1:1/d",
        "postgresql://u:Tr0ub%zzador@127.0.0.1:Tr0ub%zzador/d",
    ],
)
def test_no_error_shows_a_password_nor_has_a_cause_that_does(url: str) -> None:
    with pytest.raises(psycopg.Error) as failed:
        connect(url, "a test")
    assert "ador" not in "".join(traceback.format_exception(failed.value))
