"""MySQL's passwords (``caching_sha2_password``) over a socket, over TLS, and encrypted by RSA where there is no TLS."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from kainite.targets.mariadb.connection import connect
from support.mysql_server import mysql
from support.ports import free_port

pytestmark = pytest.mark.mysql


@pytest.fixture(params=["with TLS", "without TLS"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, int, Path, bool]]:
    """Gives the address over a socket, the port, the folder of the server's keys, and whether it has TLS."""
    folder, port = Path(tempfile.mkdtemp(prefix="kainite-my-")), free_port()
    options = ["--skip-networking=OFF", "--bind-address=127.0.0.1", f"--port={port}"]
    has_tls = request.param == "with TLS"
    with mysql(folder / "s", *options, *([] if has_tls else ["--tls-version="])) as url:
        with closing(connect(url)) as admin:
            admin.query("CREATE USER kainite IDENTIFIED BY 'geheim nis'")
            admin.query("GRANT ALL ON mysql.* TO kainite")
        yield url, port, folder / "s/data", has_tls
    shutil.rmtree(folder)


def encrypted(url: str) -> bool:
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        [(_, cipher)] = cursor.fetchall()
    return bool(cipher)


def test_a_password_is_taken_however_the_server_is_reached(
    server: tuple[str, int, Path, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    over_socket, port, data, has_tls = server
    over_network = f"mariadb://kainite:geheim%20nis@127.0.0.1:{port}/mysql"
    with monkeypatch.context() as patched:
        if not has_tls:  # the server itself knows the password once it has let the user in
            patched.setattr("pymysql._auth._have_cryptography", False)
            with pytest.raises(pymysql.OperationalError, match="let it offer TLS") as refused:
                connect(over_network)
            assert "geheim" not in str(refused.value)
    assert encrypted(over_network) is has_tls
    assert not encrypted(over_socket.replace("root@", "kainite:geheim%20nis@"))
    with pytest.raises(pymysql.OperationalError, match="Access denied"):
        connect(over_network.replace("geheim", "falsch"))
    with pytest.raises(pymysql.OperationalError, match=r"(?i)certificate|SSL"):  # the server's own has no host's name
        connect(f"{over_network}?ssl_ca={data / 'ca.pem'}")
