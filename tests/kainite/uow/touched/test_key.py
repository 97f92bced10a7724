"""Tokens of keys: equal values have one token in every spelling, and what is unknown or NULL has none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import DeltaError
from kainite.uow.canonical import canonical_of
from kainite.uow.delta import Row
from kainite.uow.touched.key import HASHED, PLAIN, ROW, ColumnKey
from support.tables import INTEGER, TEXT, columns


def key(*, nulls_distinct: bool = True) -> ColumnKey[int]:
    parts = tuple((name, canonical_of([column])) for name, column in columns(a=INTEGER, b=TEXT).items())
    return ColumnKey("t", HASHED.keyed("row", "t", ("a", "b")), parts, frozenset({"a", "b"}), nulls_distinct)


def test_values_that_are_equal_in_the_target_have_one_token() -> None:
    assert key().token({"a": 1, "b": "x"}) == key().token({"a": "01", "b": "x", "other": 7})
    assert key().token({"a": 1, "b": "x"}) != key().token({"a": 2, "b": "x"})


@pytest.mark.parametrize("image", [{"a": 1}, {}, {"a": 1, "b": None}, {"a": None, "b": "x"}])
def test_an_unknown_value_or_a_null_has_no_token(image: Row) -> None:
    assert key().token(image) is None


def test_where_nulls_are_equal_a_null_has_a_token_and_an_unknown_value_none() -> None:
    equal = key(nulls_distinct=False)

    assert equal.token({"a": 1, "b": None}) == equal.token({"a": "1", "b": None}) is not None
    assert equal.token({"a": 1, "b": None}) != equal.token({"a": 1, "b": ""})
    assert equal.token({"a": 1}) is None


@pytest.mark.parametrize(
    ("image", "unknown"), [({"a": 1}, True), ({}, True), ({"a": None}, False), ({"a": 1, "b": None}, False)]
)
def test_a_known_null_leaves_nothing_open(image: Row, unknown: bool) -> None:
    assert key().unknown(image) is unknown


def test_a_value_that_does_not_fit_names_its_column_and_table() -> None:
    with pytest.raises(DeltaError, match="column 'a' of 't'"):
        key().token({"a": "one", "b": "x"})


names = st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF), max_size=3)
places = st.tuples(st.sampled_from(["row", "unique"]), names, st.lists(names, min_size=1, max_size=2).map(tuple))


@given(places, places, names, names)
def test_tokens_of_text_are_equal_only_for_one_key_and_one_value(
    one: tuple[str, str, tuple[str, ...]], other: tuple[str, str, tuple[str, ...]], value: str, others: str
) -> None:
    tokens = PLAIN.keyed(*one)(value), PLAIN.keyed(*other)(others)

    assert (tokens[0] == tokens[1]) == ((one, value) == (other, others))


@given(names)
def test_a_derived_token_is_no_keys_token(value: str) -> None:
    for maker in (PLAIN, HASHED):
        token = maker.keyed("existence", "t", ("a",))(value)
        assert maker.derived(token) != token  # type: ignore[arg-type]


def test_hashes_are_the_same_in_every_process() -> None:
    token = HASHED.keyed("row", "t", ("id",))("1")

    assert (token, HASHED.number(token)) == (7329506312037033642 | ROW, 7329506312037033642 | ROW)


def test_one_bit_tells_which_hashes_stand_for_one_row() -> None:
    assert HASHED.keyed("row", "t", ("a", "b"))("1\x00x") & ROW
    for space in ("rows", "unique", "existence", "part", "whole", "overlap", "table"):
        assert not HASHED.keyed(space, "t", ("a",))("1") & ROW
    assert not HASHED.derived(HASHED.keyed("existence", "t", ("a",))("1")) & ROW


@pytest.mark.parametrize("value", ["", "1\x00", "\x00x", "1\x00x\x00", "1\x002\x003"])
def test_a_key_of_which_a_part_has_no_spelling_of_its_own_stands_for_several_rows(value: str) -> None:
    assert not HASHED.keyed("row", "t", ("a", "b"))(value) & ROW
