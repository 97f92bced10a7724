from __future__ import annotations

import gc
from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from kainite.targets.mariadb.connection import connect
from support.mysql_server import IS_MYSQL
from support.ports import free_port


def test_values_do_not_depend_on_the_servers_settings(mariadb_server: str) -> None:
    level = "transaction_isolation" if IS_MYSQL else "tx_isolation"
    with closing(connect(mariadb_server)) as admin:
        admin.query(f"SET GLOBAL sql_mode = '', GLOBAL time_zone = '+05:00', GLOBAL {level} = 'SERIALIZABLE'")
        try:
            with closing(connect(mariadb_server)) as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT @@sql_mode, @@time_zone, @@{level}, @@character_set_client")
                [(mode, *others)] = cursor.fetchall()
        finally:
            admin.query(f"SET GLOBAL sql_mode = DEFAULT, GLOBAL time_zone = DEFAULT, GLOBAL {level} = DEFAULT")
    assert {"STRICT_ALL_TABLES", "NO_AUTO_VALUE_ON_ZERO"} <= set(mode.split(","))
    assert "NO_ZERO_DATE" not in mode, "a source of the same kind may have zero dates"
    assert others == ["+00:00", "READ-COMMITTED", "utf8mb4"]


def test_a_server_that_is_away_is_named_without_the_password() -> None:
    with pytest.raises(pymysql.OperationalError, match=r"cannot connect to 127\.0\.0\.1") as refused:
        connect(f"mariadb://root:geheimnis@127.0.0.1:{free_port()}/d")
    assert "geheimnis" not in str(refused.value)


def test_a_socket_that_nobody_listens_at_is_named_and_nothing_stays_open(tmp_path: Path) -> None:
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(pymysql.OperationalError, match=f"cannot connect to {tmp_path}/none") as refused:
        connect(f"mariadb://root:geheimnis@/d?unix_socket={tmp_path}/none")
    assert (
        len(list(Path("/proc/self/fd").iterdir())) == before
    )  # the error holds what it has open, as long as it is held
    assert "geheimnis" not in str(refused.value)


def test_a_refused_role_is_told_without_the_password(mariadb_server: str) -> None:
    url = mariadb_server.replace("root@", "nobody:geheimnis@")
    with pytest.raises(pymysql.OperationalError, match="Access denied") as refused:
        connect(url)
    assert "geheimnis" not in str(refused.value)
