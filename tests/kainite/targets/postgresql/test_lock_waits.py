"""Sessions of the apply job that wait for locks in a PostgreSQL, and who is before them."""

from __future__ import annotations

import threading

import psycopg
import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.targets.lock_waits import LockWait, read_lock_waits
from kainite.targets.postgresql.connection import connect
from kainite.targets.postgresql.lock_waits import SESSIONS
from support.waiting import eventually


def test_who_blocks_whom_in_a_queue_and_what_is_another_sessions_business(postgres: str) -> None:
    with (
        psycopg.connect(postgres, autocommit=True) as setup,
        psycopg.connect(postgres, application_name="psql") as holder,
        connect(postgres, SESSIONS) as first,
        connect(postgres, SESSIONS) as second,
        psycopg.connect(postgres, autocommit=True, application_name="somebody") as other,
    ):
        setup.execute("CREATE TABLE item (id int PRIMARY KEY, v text)")
        setup.execute("INSERT INTO item VALUES (1, 'a')")
        assert read_lock_waits(postgres) == ()
        holder.execute("UPDATE item SET v = 'secret' WHERE id = 1")
        threads = []
        for session in (first, second, other):
            statement = "UPDATE item SET v = 'mine' WHERE id = 1"
            threads.append(threading.Thread(target=session.execute, args=(statement,)))
            threads[-1].start()
            count = len(threads)
            eventually(lambda count=count: waiting(setup) == count)  # type: ignore[misc]
        found = read_lock_waits(postgres)
        holder.rollback()
        for thread in threads:
            thread.join(60)
        assert {wait.pid for wait in found} == {first.info.backend_pid, second.info.backend_pid}
        by_pid: dict[int, LockWait] = {wait.pid: wait for wait in found}
        ahead = by_pid[first.info.backend_pid]
        assert ahead.statement == "UPDATE item SET v = … WHERE id = …"
        (blocking,) = ahead.holders
        assert (blocking.pid, blocking.state) == (holder.info.backend_pid, "idle in transaction")
        assert blocking.statement == "UPDATE item SET v = … WHERE id = …"
        assert "psql" in blocking.who
        assert blocking.seconds is not None
        queue = by_pid[second.info.backend_pid].holders
        assert first.info.backend_pid in {one.pid for one in queue}


def waiting(connection: psycopg.Connection) -> int:
    sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    row = connection.execute(sql).fetchone()
    assert row is not None
    return int(row[0])


def test_a_server_that_does_not_answer_is_told_without_its_secret() -> None:
    with pytest.raises(TargetUnavailableError) as told:
        read_lock_waits("postgresql://u:geheim@127.0.0.1:1/d")
    assert "geheim" not in str(told.value)
