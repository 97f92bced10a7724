"""Who may still write in a source."""

from __future__ import annotations

import psycopg
import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.findings import CheckFinding
from kainite.replicate.source_closing import look_at_writers
from support.replicas import run


def look(url: str) -> list[CheckFinding]:
    with psycopg.connect(url, autocommit=True, application_name="kainite test") as connection:
        return list(look_at_writers(connection))


def test_the_statement_that_closes_a_source_does(source: SourceSlot) -> None:
    with psycopg.connect(source.url, autocommit=True, application_name="the shop") as client:
        wrong, sessions = look(source.url)
        assert wrong.verdict == "wrong"
        assert "takes writes" in wrong.found
        assert f"pid {client.info.backend_pid} (postgres, the shop, since " in sessions.found
        close, end = wrong.mend.split("; ", 1)
        assert end == sessions.mend
        run(source.url, close)
        assert [found.verdict for found in look(source.url)] == ["ok", "warning"]
        client.execute("INSERT INTO note VALUES ('a session that was there before')")
        run(source.url, end)
        assert [found.verdict for found in look(source.url)] == ["ok"]
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        run(source.url, "INSERT INTO note VALUES ('late')")


def test_a_role_of_its_own_mind_is_named(source: SourceSlot) -> None:
    name = f"writer_{source.slot}"
    run(source.url, f"CREATE ROLE {name} LOGIN")
    try:
        database = run(source.url, "SELECT current_database()")[0][0]
        run(source.url, f"ALTER DATABASE {database} SET default_transaction_read_only = on",
            "SET default_transaction_read_only = off",
            f"ALTER ROLE {name} IN DATABASE {database} SET default_transaction_read_only = off")  # fmt: skip
        found = look(source.url)
        assert [(f.verdict, name in f.found) for f in found] == [("ok", False), ("wrong", True)]
    finally:
        run(source.url, "SET default_transaction_read_only = off", f"DROP ROLE {name}")
