from __future__ import annotations

from contextlib import closing

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kainite.base.errors import TargetUnavailableError
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.opening import logs_in, open_target
from support.names import unique
from support.ports import free_port


def let_in(url: str, *logs: str) -> None:
    """Lets an apply job of each log in, one after the other."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE TABLE good (id int PRIMARY KEY)")
    catalogue = reflect(url, [])
    with closing(open_target(url, catalogue)) as target:
        target.prepare(catalogue)
        for log in logs:
            target.raise_generation(log, 1)


def test_the_logs_whose_jobs_were_let_in_are_named(postgres: str) -> None:
    """Shows none is named before the first job, and each once, however often its jobs begin."""
    assert logs_in(postgres) == ()
    let_in(postgres, "log/us", "log/eu", "log/us")
    assert logs_in(postgres) == ("log/eu", "log/us")


def test_a_role_that_may_not_look_is_told_none(postgres: str) -> None:
    let_in(postgres, "log/us")
    role = unique("role").replace("-", "_")
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN".encode())
        try:
            of_role = conninfo_to_dict(make_conninfo(postgres, user=role))
            port = f"&port={of_role['port']}" if "port" in of_role else ""
            assert logs_in(f"postgresql://{role}@/{of_role['dbname']}?host={of_role['host']}{port}") == ()
        finally:
            admin.execute(f"DROP ROLE {role}".encode())


def test_a_server_that_is_away_is_unavailable() -> None:
    with pytest.raises(TargetUnavailableError) as raised:
        logs_in(f"postgresql://u:geheimnis@127.0.0.1:{free_port()}/d")
    assert "geheimnis" not in str(raised.value)
