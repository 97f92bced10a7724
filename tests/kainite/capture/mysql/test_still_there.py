"""A binlog that is thrown away while it is read is noticed, also where the server says nothing of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.source import Source
from kainite.capture.mysql.still_there import BinlogNow, check_still_there
from support.mariadb_source import Extraction, execute, mariadb_with_binlog, source_database

PLACE = BinlogPlace("binlog.000003", 500)
SAME = BinlogNow("7", PLACE, {"binlog.000002": 900, "binlog.000003": 500}, "0-7-42,1-7-3")


def judged(now: BinlogNow) -> bool:
    return check_still_there("7", PLACE, "1-7-3,0-7-42", now)


def test_a_server_that_is_where_it_was_read_to_has_sent_all() -> None:
    assert judged(SAME)
    assert judged(replace(SAME, gtids=None))


@pytest.mark.parametrize("end", [BinlogPlace("binlog.000003", 700), BinlogPlace("binlog.000004", 4)])
def test_a_server_that_has_written_on_may_be_about_to_send_it(end: BinlogPlace) -> None:
    assert not judged(replace(SAME, end=end, files={**SAME.files, end.file: end.position}))


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (replace(SAME, server="8"), "another server now \\(server 8; 7 was read\\)"),
        (replace(SAME, files={"binlog.000001": 330}), "no file binlog.000003 any more, its first is binlog.000001"),
        (replace(SAME, files={"binlog.000003": 330}), "binlog.000003 has 330 bytes alone"),
        (replace(SAME, gtids="0-7-9"), "the GTIDs there were 1-7-3,0-7-42, and now are 0-7-9"),
        (replace(SAME, gtids=""), "and now are none"),
    ],
)
def test_another_binlog_is_refused(now: BinlogNow, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        judged(now)


@pytest.fixture(autouse=True)
def asked_at_each_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kainite.capture.mysql.extractor.QUIET_S", 0.0)


def refusal(extraction: Extraction) -> str:
    """Returns why the extractor gives up; it is asked until then."""
    try:
        for _ in range(50):
            extraction.answer()
    except SourceError as error:
        return str(error)
    raise AssertionError("the extractor goes on")


def test_a_reset_while_the_binlog_is_read_is_refused(tmp_path: Path) -> None:
    """Shows it of a server that has nothing since, and of one that has come beyond the place again."""
    with mariadb_with_binlog(tmp_path / "server") as server, source_database(server) as database:
        execute(database, "CREATE TABLE item (id int PRIMARY KEY)")
        for first, after in ((1_000, 0), (2_000, 60)):
            with Extraction(database) as extraction:
                execute(database, f"INSERT INTO item SELECT seq + {first} FROM seq_1_to_500")  # one that is large
                extraction.until(1)
                execute(database, "RESET MASTER", *(f"INSERT INTO item VALUES ({n})" for n in range(after)))
                why = refusal(extraction)
                if "ended the binlog's stream" in why:  # so does the server once it has something to send
                    with Extraction(database, extraction.offset) as again:
                        why = refusal(again)
                assert "RESET MASTER" in why or "made on another server" in why


def test_a_quiet_source_is_asked_and_goes_on(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(database, "CREATE TABLE item (id int PRIMARY KEY)")
    asked = list[BinlogPlace]()
    look = Source.look

    def told(source: Source, place: BinlogPlace) -> BinlogNow:
        asked.append(place)
        return look(source, place)

    monkeypatch.setattr(Source, "look", told)
    with Extraction(database) as extraction:
        assert extraction.answer() == []  # the offset that notes the options
        for number in range(1, 4):
            assert extraction.answer() == []
            assert len(asked) == number
            execute(database, f"INSERT INTO item VALUES ({number})", "FLUSH BINARY LOGS")
            assert extraction.until(number)


def test_a_connection_on_which_nothing_is_sent_is_given_up(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows: the server has written on when it is asked, twice, and no event has come between."""
    execute(database, "CREATE TABLE item (id int PRIMARY KEY)")
    with Extraction(database) as extraction:
        extraction.answer()
        monkeypatch.setattr("kainite.capture.mysql.binlog_connection.BinlogStream.receive", lambda *_: None)
        execute(database, "INSERT INTO item VALUES (1)")
        assert "the connection is given up" in refusal(extraction)
