"""PostgreSQL as the source of a point."""

from __future__ import annotations

import psycopg

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.point_source import PostgresPoints


def test_a_snapshot_lies_behind_what_was_the_floor_and_before_the_heartbeat(source: SourceSlot, postgres: str) -> None:
    points = PostgresPoints(ReplicaEnds(source, postgres, "log/0"), ())
    floor = points.floor()
    with psycopg.connect(source.url, autocommit=True) as writer:
        writer.execute("INSERT INTO item VALUES (1)")
    with points.snapshot() as found:
        assert found.place > floor
        points.beat()
        assert points.floor() > found.place
        with psycopg.connect(source.url) as reader:
            reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            reader.execute(f"SET TRANSACTION SNAPSHOT '{found.snapshot}'".encode())
            assert reader.execute("SELECT count(*) FROM item").fetchone() == (1,)
    assert points.shown(0x1_0000_0010) == "1/10"
