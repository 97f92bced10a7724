"""Heartbeats are written when they are due, and a source that takes none is read all the same."""

from __future__ import annotations

import socket

from kainite.capture.heartbeats import Heartbeats
from kainite.capture.mysql.heartbeat import TableHeartbeat
from support.mariadb_source import rows


def test_a_heartbeat_is_written_each_time_it_is_due(database: str) -> None:
    now = [0.0]
    heartbeat = Heartbeats(TableHeartbeat(database), 10.0, lambda: now[0])
    for moment in (0.0, 9.0, 10.0, 25.0):
        now[0] = moment
        heartbeat.beat()
    heartbeat.close()
    assert rows(database, "SELECT beat FROM kainite_heartbeat") == [(2,)]


def test_a_source_that_takes_none_is_told_once() -> None:
    told: list[str] = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        url = f"mariadb://root@127.0.0.1:{taken.getsockname()[1]}/shop"
        heartbeat = Heartbeats(TableHeartbeat(url), 0.0, complain=told.append)
        heartbeat.beat()
        heartbeat.beat()
    assert len(told) == 1
    assert "no heartbeat can be written" in told[0]
