"""Sessions begin at one place, and never before what was read of the binlog; XA transactions are noticed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.same_place import BEGINNINGS, has_xa, same_place
from kainite_demo.mariadb_server import BINLOG, serving
from support.mariadb_source import execute, mariadb_with_binlog, source_database

pytestmark = pytest.mark.mariadb  # a snapshot of MySQL does not say its place in the binlog

FIRST, NEXT = BinlogPlace("binlog.000001", 400), BinlogPlace("binlog.000001", 900)


@pytest.fixture
def url(mariadb_source_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr("kainite.capture.mysql.same_place.has_xa", lambda _: False)  # other tests of the server may
    with source_database(mariadb_source_server) as made:
        yield made


def test_all_begin_again_until_they_are_at_one_place_that_is_not_too_early(url: str) -> None:
    found = iter([{FIRST, NEXT}, {FIRST}, {NEXT}])
    assert same_place(url, lambda: next(found), NEXT) == NEXT


def test_where_they_never_are_commits_are_kept_out(url: str) -> None:
    begun = []

    def begin() -> set[BinlogPlace]:
        begun.append(1)
        return {NEXT} if len(begun) > BEGINNINGS else {FIRST, NEXT}

    assert same_place(url, begin, FIRST) == NEXT
    with pytest.raises(SourceError, match="begin at different places"):
        same_place(url, lambda: {FIRST, NEXT}, FIRST)
    with pytest.raises(SourceError, match=f"begins at {FIRST}, and its binlog was read up to {NEXT}"):
        same_place(url, lambda: {FIRST}, NEXT)


def test_xa_is_noticed_also_of_a_transaction_that_was_prepared_before_the_server_began(tmp_path: Path) -> None:
    durable, first = "--innodb-flush-log-at-trx-commit=1", tmp_path / "a"
    with mariadb_with_binlog(first, durable) as url:
        execute(url, "CREATE DATABASE a", "CREATE TABLE a.item (id INT PRIMARY KEY)")
        assert not has_xa(url)
        execute(url, "XA START 'one'", "INSERT INTO a.item VALUES (1)", "XA END 'one'", "XA PREPARE 'one'")
        assert has_xa(url)
        shutil.copytree(first / "data", tmp_path / "b/data")
        with serving(tmp_path / "b", *BINLOG, durable) as begun_again:
            execute(begun_again, "XA COMMIT 'one'")
            assert has_xa(begun_again)
