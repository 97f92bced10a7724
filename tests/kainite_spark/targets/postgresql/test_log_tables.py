from __future__ import annotations

from contextlib import closing

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kainite.base.errors import TargetUnavailableError
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.log_tables import log_tables
from kainite_spark.targets.opening import open_target, taken_in
from support.names import unique
from support.ports import free_port


def test_a_role_that_may_not_look_is_told_nothing(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("CREATE TABLE good (id int PRIMARY KEY)")
    catalogue = reflect(postgres, [])
    assert taken_in(postgres) == {}
    with closing(open_target(postgres, catalogue)) as target:
        target.prepare("log/us", catalogue)
        target.take_tables(log_tables("log/us", "log/us", catalogue, ()))
    assert taken_in(postgres) == {"public.good": "log/us"}
    role = unique("role").replace("-", "_")
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN".encode())
        try:
            of_role = conninfo_to_dict(make_conninfo(postgres, user=role))
            port = f"&port={of_role['port']}" if "port" in of_role else ""
            assert taken_in(f"postgresql://{role}@/{of_role['dbname']}?host={of_role['host']}{port}") == {}
        finally:
            admin.execute(f"DROP ROLE {role}".encode())


def test_a_server_that_is_away_is_unavailable() -> None:
    with pytest.raises(TargetUnavailableError) as raised:
        taken_in(f"postgresql://u:geheimnis@127.0.0.1:{free_port()}/d")
    assert "geheimnis" not in str(raised.value)
