from __future__ import annotations

from contextlib import closing

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.opening import logs_in, open_target
from support.mariadb_server import run_script
from support.ports import free_port


def test_the_logs_whose_jobs_were_let_in_are_named(mariadb: str, mariadb_server: str) -> None:
    """Shows none is named before the first job, each once, and none to a role that may not look."""
    assert logs_in(mariadb) == ()
    run_script(mariadb, "CREATE TABLE good (id int PRIMARY KEY)")
    catalogue = reflect(mariadb, [])
    with closing(open_target(mariadb, catalogue)) as target:
        target.prepare(catalogue)
        for log in ("log/us", "log/eu", "log/us"):
            target.raise_generation(log, 1)
    assert logs_in(mariadb) == ("log/eu", "log/us")
    name = mariadb.partition("?")[0].rpartition("/")[2]
    run_script(mariadb_server, f"CREATE USER {name}@localhost; GRANT SELECT ON {name}.good TO {name}@localhost")
    try:
        assert logs_in(mariadb.replace("root@", f"{name}@")) == ()
    finally:
        run_script(mariadb_server, f"DROP USER {name}@localhost")


def test_a_server_that_is_away_is_unavailable() -> None:
    with pytest.raises(TargetUnavailableError) as raised:
        logs_in(f"mariadb://root:geheimnis@127.0.0.1:{free_port()}/d")
    assert "geheimnis" not in str(raised.value)
