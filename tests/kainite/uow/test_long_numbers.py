"""Numbers of many digits are strings as values of columns, and refused within objects and arrays."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.base.errors import DeltaError
from kainite.uow.exact_json import loads_marked
from kainite.uow.long_numbers import unmarked

LONG = "12345678901234567890.123"


def read(row: str) -> dict[str, Any]:
    item, marked = loads_marked(f'{{"uow":"A","op":"insert","row":{row}}}'.encode())
    assert marked
    return unmarked(item)


def test_a_columns_value_becomes_a_plain_string() -> None:
    value = read(f'{{"id":{LONG}}}')["row"]["id"]
    assert (value, type(value)) == (LONG, str)


@pytest.mark.parametrize("value", ["[{}]", '{{"a": {}}}', '[0, {{"a": [{}]}}]'])
def test_within_a_value_it_is_refused(value: str) -> None:
    with pytest.raises(DeltaError, match="column 'doc' has a number of too many digits"):
        read(f'{{"id": 1, "doc": {value.format(LONG)}}}')


@pytest.mark.parametrize("value", ["[{}]", '{{"a": {}}}'])
def test_a_string_of_the_same_digits_is_not(value: str) -> None:
    row = f'{{"id":{LONG},"doc":{value.format(chr(34) + LONG + chr(34))}}}'
    assert str(read(row)["row"]["doc"]) in (str([LONG]), str({"a": LONG}))


@pytest.mark.parametrize("row", ["7", "null", f"[{LONG}]"])
def test_what_is_no_row_stays_as_it_is(row: str) -> None:
    assert unmarked({"row": row}) == {"row": row}
