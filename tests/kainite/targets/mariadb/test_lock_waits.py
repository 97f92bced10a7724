"""Transactions that wait for rows in a MariaDB, and who has locked these."""

from __future__ import annotations

import threading

import pymysql
import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.targets.lock_waits import read_lock_waits
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.lock_waits import question
from support.mariadb_server import WAITING_FOR_ROWS
from support.waiting import eventually


def rows(connection: pymysql.connections.Connection, sql: str) -> tuple[tuple[object, ...], ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return tuple(cursor.fetchall())


def test_who_has_locked_the_row_that_a_session_waits_for(mariadb: str) -> None:
    setup, holder, waiter = connect(mariadb), connect(mariadb), connect(mariadb)
    setup.query("CREATE TABLE item (id int PRIMARY KEY, v text) ENGINE=InnoDB")
    setup.query("INSERT INTO item VALUES (1, 'a')")
    holder.begin()
    holder.query("UPDATE item SET v = 'secret' WHERE id = 1")
    thread = threading.Thread(target=waiter.query, args=("UPDATE item SET v = 'mine' WHERE id = 1",))
    thread.start()
    try:
        eventually(lambda: rows(setup, WAITING_FOR_ROWS) == ((1,),))
        found = read_lock_waits(mariadb)  # asked once: the server repeats an old answer to who asks too often
    finally:
        holder.rollback()
        thread.join(60)
    waiting, holding = (int(one.thread_id()) for one in (waiter, holder))  # type: ignore[no-untyped-call]
    (wait,) = found
    assert (wait.pid, wait.statement) == (waiting, "UPDATE item SET v = … WHERE id = …")
    (before,) = wait.holders
    assert (before.pid, before.state, before.statement) == (holding, "Sleep", None)
    assert before.seconds is not None
    for connection in (setup, holder, waiter):
        connection.close()


def test_each_server_is_asked_where_it_keeps_its_waits(mariadb: str) -> None:
    """Shows of the question to MySQL that it is SQL, and asks for MySQL's table: no MySQL is here to answer it."""
    connection = connect(mariadb)
    rows(connection, question("10.11.6-MariaDB"))
    with pytest.raises(pymysql.err.ProgrammingError, match=r"'performance_schema\.data_lock_waits' doesn't exist"):
        rows(connection, question("8.4.0"))
    connection.close()


def test_a_server_that_does_not_answer_is_told_without_its_secret() -> None:
    with pytest.raises(TargetUnavailableError) as told:
        read_lock_waits("mariadb://u:geheim@127.0.0.1:1/d")
    assert "geheim" not in str(told.value)
