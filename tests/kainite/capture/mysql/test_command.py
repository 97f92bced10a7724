"""The program: its options, its errors in one line, its exit statuses."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import orjson
import pytest

from kainite.capture.mysql.command import PROGRAM, with_password
from support.mariadb_source import execute, here

REQUEST = b'{"start":{"file":"binlog.000001","position":4,"number":0},"end":null}\n'


def run(*options: str, request: bytes = REQUEST) -> subprocess.CompletedProcess[bytes]:
    command = [str(Path(sysconfig.get_path("scripts"), PROGRAM)), *options]
    return subprocess.run(command, input=request, capture_output=True, check=False, timeout=60)


def test_help_names_what_the_source_needs() -> None:
    assert b"binlog_row_metadata=FULL" in run("--help").stdout


def test_an_answer_ends_with_eop(database: str) -> None:
    execute(database, "CREATE TABLE t (id int PRIMARY KEY)")
    found = here(database)
    execute(database, "INSERT INTO t VALUES (1)")
    request = orjson.dumps({"start": found, "end": None}) + b"\n"
    first = run("--source", database, request=request)
    assert (first.returncode, first.stdout.count(b"\n"), first.stdout[-1:]) == (0, 1, b"\0")
    given = orjson.loads(first.stdout[:-1])
    assert not given["ahead"]  # nothing is asked before it is stored which options hold
    done = run("--source", database, request=orjson.dumps({"start": given["offset"], "end": None}) + b"\n")
    assert (done.returncode, done.stdout.count(b"\n"), done.stdout[-1:]) == (0, 3, b"\0")


def test_a_source_that_is_away_is_waited_for(tmp_path: Path) -> None:
    done = run("--source", f"mariadb://root@/shop?unix_socket={tmp_path}/nowhere")
    assert done.returncode == os.EX_TEMPFAIL
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("change", "request_", "message"),
    [
        (("root@", "nobody:secret@"), REQUEST, b"Access denied"),
        (("", ""), b"{}\n", b"extractorOffsets=kainite"),
        (("mariadb://", "postgresql://"), REQUEST, b""),
    ],
)
def test_what_somebody_has_to_mend_is_a_failure(
    database: str, change: tuple[str, str], request_: bytes, message: bytes
) -> None:
    done = run("--source", database.replace(*change), request=request_)
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert message in done.stderr
    assert b"secret" not in done.stderr


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mariadb://me@db/shop", "mariadb://me:p%2F%40@db/shop"),
        ("mariadb://me:own@db/shop", "mariadb://me:own@db/shop"),
        ("mariadb://db/shop", "mariadb://db/shop"),
    ],
)
def test_the_password_comes_from_the_environment(url: str, expected: str) -> None:
    assert with_password(url, "p/@") == expected
    assert with_password(url, "") == url
