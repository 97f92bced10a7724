from __future__ import annotations

from pathlib import Path

import pytest

from kainite.targets.mariadb.address import ADDRESS, server_of


@pytest.mark.parametrize("scheme", ["mariadb", "mysql"])
def test_both_schemes_mean_the_same(scheme: str) -> None:
    assert ADDRESS.parse(f"{scheme}://u:p@h:1/d", Path("/etc")) == "mariadb://u:p@h:1/d"


def test_all_parts_of_an_address_are_read() -> None:
    read = server_of("mariadb://us%40er:p%2Fw@db.example:3307/sh%20op?ssl_ca=/etc/ca.pem&unix_socket=/run/s")
    assert (read.host, read.port, read.user, read.password, read.database) == (
        "db.example",
        3307,
        "us@er",
        "p/w",
        "sh op",
    )
    assert (read.ssl_ca, read.unix_socket) == ("/etc/ca.pem", "/run/s")
    assert "p/w" not in repr(read)


def test_what_is_not_given_is_usual() -> None:
    read = server_of("mariadb://u@h/d")
    assert (read.port, read.password, read.unix_socket, read.ssl_ca) == (3306, "", None, None)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mariadb://u:geheim/nis@h/d", "percent-encoded"),
        ("mariadb://u:geheimnis@h", "names no database"),
        ("mariadb://u:geheimnis@h/d?sslmode=verify-full", "has the parameter sslmode: known are unix_socket"),
        ("mariadb://u:geheimnis@a,b/d", "several hosts"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        ADDRESS.parse(url, Path("/etc"))
    assert "geheim" not in str(refused.value)


def test_its_password_is_hidden_and_known() -> None:
    assert ADDRESS.show("mariadb://u:geheimnis@h/d") == "mariadb://u:***@h/d"
    assert list(ADDRESS.secrets("mysql://u:geheimnis@h/d")) == ["geheimnis"]
