"""A server that greets is there; one that does not is away."""

from __future__ import annotations

import socket

from kainite.capture.mysql.source_reach import is_away


def test_a_server_that_greets_is_there(database: str) -> None:
    assert not is_away(database)
    assert not is_away(database.replace("root@", "nobody:wrong@"))


def test_nobody_at_the_address_is_away(database: str) -> None:
    assert is_away(database.replace("unix_socket=", "unix_socket=/nowhere"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        assert is_away(f"mariadb://root@127.0.0.1:{taken.getsockname()[1]}/shop")


def test_an_address_that_is_none_is_not_away() -> None:
    assert not is_away("mariadb://root@db")
