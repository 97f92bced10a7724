"""``--begin`` makes the offset file, once, of a JSON value or a time that is kept to the digit."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kainite.base.errors import SettingsError, SourceError
from kainite.extract.offsets.begin import begin_at
from kainite.extract.offsets.offset_file import offset_file_of
from kainite.settings import Settings, load


def settings(bench: Any, offsets: str = "kainite") -> Settings:
    return load(bench.cyclic("true", offsets=offsets))


@pytest.mark.parametrize("text", ["null", "5", '{"page": 3, "list": [1.5, "x"]}', '"2026"'])
def test_any_json_is_a_beginning(bench: Any, text: str) -> None:
    begin_at(settings(bench), text)

    file = offset_file_of(settings(bench))
    assert file is not None
    assert file.load().start == orjson.loads(text)


def test_a_time_stands_without_quotes(bench: Any) -> None:
    begin_at(settings(bench, "time"), "2026-01-01T00:00:00Z")

    assert b"2026-01-01T00:00:00" in bench.offset.read_bytes()


@pytest.mark.parametrize(
    ("offsets", "text", "complaint"),
    [
        ("kainite", "{", "is no JSON"),
        ("kainite", "0.1000000000000000000001", "--begin '0.1000000000000000000001' has "),
        ("extractor", "null", "--begin is for extractorMode=cyclic with extractorOffsets=kainite or time"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_makes_no_file(bench: Any, offsets: str, text: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        begin_at(settings(bench, offsets), text)

    assert not bench.offset.exists()


def test_a_second_beginning_leaves_the_first(bench: Any) -> None:
    begin_at(settings(bench), "1")
    before = bench.offset.read_bytes()

    with pytest.raises(SourceError, match="is there already"):
        begin_at(settings(bench), "2")

    assert bench.offset.read_bytes() == before
