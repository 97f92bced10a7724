from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kainite.base.errors import DeltaError
from kainite.targets.sqlite.type_families import family_of
from kainite.uow.canonical import canonical_of
from kainite.uow.catalogue.tables import Column, TypeFamily


@pytest.mark.parametrize(
    ("declared", "family"),
    [
        ("INTEGER", TypeFamily.INTEGER),
        (" bigint ", TypeFamily.INTEGER),
        ("int(11) unsigned", TypeFamily.INTEGER),
        ("DECIMAL(10, 2)", TypeFamily.OPAQUE),
        ("varchar(80)", TypeFamily.TEXT),
        ("Boolean", TypeFamily.BOOLEAN),
        ("uuid", TypeFamily.UUID),
        ("DATE", TypeFamily.DATE),
        ("DATETIME", TypeFamily.OPAQUE),
        ("REAL", TypeFamily.OPAQUE),
        ("BLOB", TypeFamily.OPAQUE),
        ("", TypeFamily.OPAQUE),
        ("(", TypeFamily.OPAQUE),
    ],
)
def test_the_first_word_of_a_declared_type_tells_its_family(declared: str, family: TypeFamily) -> None:
    assert family_of(declared) is family


NUMBERS = st.from_regex(r"-?[0-9]{1,30}(\.[0-9]{1,25})?", fullmatch=True)
NEAR = NUMBERS.flatmap(lambda digits: st.tuples(st.just(digits), NUMBERS | st.sampled_from("019").map(digits.__add__)))


@example("decimal(30,20)", ("0.12345678901234567", "0.123456789012345665"))
@example("numeric", ("12345678901234567890.1", "12345678901234567890"))
@example("bigint", ("9223372036854775808", "9223372036854775809"))
@given(st.sampled_from(["int", "bigint", "decimal(30,20)", "numeric", "text", "boolean"]), NEAR)
def test_a_row_has_one_token_however_its_key_is_spelled(declared: str, pair: tuple[str, str]) -> None:
    spelled = canonical_of([Column("k", declared, family_of(declared))])
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE t (k {declared} PRIMARY KEY)")
        try:
            connection.executemany("INSERT INTO t VALUES (?)", [(text,) for text in pair])
        except sqlite3.IntegrityError:
            try:
                tokens = {spelled(text) for text in pair}
            except DeltaError:
                return
            assert len(tokens) == 1
