from __future__ import annotations

from contextlib import closing

import pytest

from kainite.targets.mariadb.connection import connect
from kainite_spark.targets.mariadb.errors import number_of
from kainite_spark.targets.mariadb.packet import FailedStatementError, send


def test_each_statement_has_its_answer(mariadb: str) -> None:
    with closing(connect(mariadb)) as connection:
        script = ["CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1), (2, 1)"]
        script += ["UPDATE t SET v = 1 WHERE id < 9", "SELECT v FROM t", "DELETE FROM t WHERE id = 7", "SELECT '%s;'"]
        answers = send(connection, script)
    # An update that changes nothing counts the rows that it finds.
    assert [answer.met for answer in answers] == [0, 2, 2, 2, 0, 1]
    assert [list(answer.rows) for answer in answers[3:]] == [[(1,), (1,)], [], [("%s;",)]]


def test_the_first_failure_ends_the_packet_and_the_connection_goes_on(mariadb: str) -> None:
    with closing(connect(mariadb)) as connection:
        send(connection, ["CREATE TABLE t (id int PRIMARY KEY)"])
        insert = "INSERT INTO t VALUES (1)"
        with pytest.raises(FailedStatementError) as failed:
            send(connection, [insert, insert, "INSERT INTO t VALUES (2)"])
        assert len(failed.value.answers) == 1
        assert number_of(failed.value.error) == 1062
        assert send(connection, ["SELECT id FROM t"])[0].rows == ((1,),)
