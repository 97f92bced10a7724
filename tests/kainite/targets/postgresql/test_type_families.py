from __future__ import annotations

import pytest

from kainite.targets.postgresql.type_families import family_of
from kainite.uow.catalogue.tables import TypeFamily


@pytest.mark.parametrize(
    ("base", "family"),
    [
        ("int2", TypeFamily.INTEGER),
        ("int8", TypeFamily.INTEGER),
        ("numeric", TypeFamily.NUMERIC),
        ("bpchar", TypeFamily.TEXT),
        ("bool", TypeFamily.BOOLEAN),
        ("uuid", TypeFamily.UUID),
        ("date", TypeFamily.DATE),
        ("float8", TypeFamily.OPAQUE),
        ("timestamptz", TypeFamily.OPAQUE),
        ("_text", TypeFamily.OPAQUE),
        ("somebody's own", TypeFamily.OPAQUE),
    ],
)
def test_a_type_has_the_family_of_its_spelling(base: str, family: TypeFamily) -> None:
    assert family_of(base, enum=False, domain=False, deterministic=True) is family


def test_an_enum_is_text() -> None:
    assert family_of("colour", enum=True, domain=False, deterministic=True) is TypeFamily.TEXT


def test_a_collation_that_may_take_different_bytes_for_equal_is_opaque() -> None:
    assert family_of("text", enum=False, domain=False, deterministic=False) is TypeFamily.OPAQUE


@pytest.mark.parametrize(("base", "family"), [("numeric", TypeFamily.OPAQUE), ("int4", TypeFamily.INTEGER)])
def test_a_domain_over_numeric_may_round(base: str, family: TypeFamily) -> None:
    assert family_of(base, enum=False, domain=True, deterministic=True) is family
