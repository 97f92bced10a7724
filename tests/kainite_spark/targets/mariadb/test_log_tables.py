from __future__ import annotations

from contextlib import closing

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.log_tables import log_tables
from kainite_spark.targets.opening import open_target, taken_in
from support.mariadb_server import run_script
from support.ports import free_port


def test_a_role_that_may_not_look_is_told_nothing(mariadb: str, mariadb_server: str) -> None:
    assert taken_in(mariadb) == {}
    run_script(mariadb, "CREATE TABLE good (id int PRIMARY KEY)")
    catalogue = reflect(mariadb, [])
    name = mariadb.partition("?")[0].rpartition("/")[2]
    with closing(open_target(mariadb, catalogue)) as target:
        target.prepare("log/us", catalogue)
        target.take_tables(log_tables("log/us", "log/us", catalogue, ()))
    assert taken_in(mariadb) == {f"{name}.good": "log/us"}
    run_script(mariadb_server, f"CREATE USER {name}@localhost; GRANT SELECT ON {name}.good TO {name}@localhost")
    try:
        assert taken_in(mariadb.replace("root@", f"{name}@")) == {}
    finally:
        run_script(mariadb_server, f"DROP USER {name}@localhost")


def test_a_server_that_is_away_is_unavailable() -> None:
    with pytest.raises(TargetUnavailableError) as raised:
        taken_in(f"mariadb://root:geheimnis@127.0.0.1:{free_port()}/d")
    assert "geheimnis" not in str(raised.value)
