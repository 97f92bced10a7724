"""An offset belongs to one server and database."""

from __future__ import annotations

import itertools

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql.place import BinlogIdentity, BinlogPlace, check_gtids, check_identity

FOUND = BinlogIdentity("7", "shop", 100)


def test_an_offset_of_this_server_is_taken() -> None:
    check_identity(None, FOUND)
    check_identity(BinlogIdentity.from_json(FOUND.as_json()), FOUND)
    check_gtids("", "0-1-1", BinlogPlace("b", 4))
    check_gtids("0-1-1,1-1-2", "1-1-2,0-1-1", BinlogPlace("b", 4))


@pytest.mark.parametrize(
    ("noted", "message"),
    [
        (BinlogIdentity("8", "shop", 100), "another server"),
        (BinlogIdentity("7", "shop", 99), "another server"),
        (BinlogIdentity("7", "other", 100), "names database shop"),
    ],
)
def test_another_server_is_refused(noted: BinlogIdentity, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        check_identity(noted, FOUND)


def test_a_binlog_that_was_written_anew_is_refused() -> None:
    with pytest.raises(SourceError, match="RESET MASTER"):
        check_gtids("0-1-5", "0-1-4", BinlogPlace("binlog.000001", 400))


def test_places_are_ordered_also_where_file_numbers_grow_by_a_digit() -> None:
    places = [BinlogPlace("b.999998", 9), BinlogPlace("b.999999", 4), BinlogPlace("b.999999", 5),
              BinlogPlace("b.1000000", 4)]  # fmt: skip
    assert all(one.is_before(other) for one, other in itertools.pairwise(places))
    assert not any(other.is_before(one) for one, other in itertools.pairwise(places))
    assert not places[0].is_before(places[0])
