from __future__ import annotations

from collections.abc import Iterator

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.settings import ApplySettings, MarkersSettings
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.opener import TargetRequest
from kainite_spark.targets.opening import look_at_kind
from support.mariadb_server import run_script
from support.ports import free_port
from support.tables import SHOP

DDL = """
    CREATE TABLE good (id int PRIMARY KEY); CREATE TABLE gone (id int PRIMARY KEY);
    CREATE TABLE old (id int PRIMARY KEY) ENGINE = MyISAM;
    CREATE TABLE coarse (name varchar(9) COLLATE utf8mb4_unicode_ci PRIMARY KEY);
"""


@pytest.fixture
def role(mariadb: str, mariadb_server: str) -> Iterator[str]:
    name = mariadb.partition("?")[0].rpartition("/")[2]
    run_script(mariadb, DDL)
    run_script(mariadb_server, f"CREATE USER {name}@localhost; GRANT SELECT, INSERT ON {name}.* TO {name}@localhost")
    yield name
    run_script(mariadb_server, f"DROP USER {name}@localhost")


def looked(url: str, role: str | None = None, without: str = "") -> list[str]:
    catalogue = reflect(url, [])
    if without:
        run_script(url, f"DROP TABLE {without}")
    asked = url.replace("root@", f"{role}@") if role else url
    request = TargetRequest(asked, catalogue, None, ApplySettings(), MarkersSettings())
    return [f"{finding.state.value}: {finding.what} | {finding.remedy}" for finding in look_at_kind(request)]


def test_what_the_job_would_trip_over_is_told_with_what_mends_it(mariadb: str, role: str) -> None:
    run_script(mariadb, "CREATE TABLE kainite_load_table (id int); CREATE TABLE kainite_held_delta (id int)")
    told = "\n".join(looked(mariadb, role, without="gone"))
    assert f"GRANT UPDATE ON `{role}`.`kainite_load_table` TO" in told
    assert "kainite_held_delta" not in told  # it may INSERT there
    assert f"may not UPDATE, DELETE, TRIGGER on `{role}`.`good`" in told
    assert f"GRANT UPDATE, DELETE, TRIGGER ON `{role}`.`good` TO `{role}`@`localhost`" in told
    assert f"may not UPDATE, DELETE, CREATE on `{role}`.`kainite_fence`" in told
    assert "the target has no table gone" in told
    assert "storage engine MyISAM" in told
    assert "the key of coarse (name varchar(9)) has a type or collation" in told


def test_a_target_in_order_is_told_so(mariadb: str) -> None:
    run_script(mariadb, "CREATE TABLE good (id int PRIMARY KEY)")
    told = looked(mariadb)
    assert any("may SELECT, INSERT, UPDATE, DELETE, TRIGGER on 1 table" in line for line in told)
    assert not [line for line in told if line.startswith(("wrong", "warning"))]


def test_a_server_that_is_away_is_unavailable() -> None:
    url = f"mariadb://root:geheimnis@127.0.0.1:{free_port()}/d"
    with pytest.raises(TargetUnavailableError) as raised:
        list(look_at_kind(TargetRequest(url, SHOP, None, ApplySettings(), MarkersSettings())))
    assert "geheimnis" not in str(raised.value)
