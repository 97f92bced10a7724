from __future__ import annotations

import pytest

from kainite.targets.sqlite.type_families import family_of
from kainite.uow.catalogue.tables import TypeFamily


@pytest.mark.parametrize(
    ("declared", "family"),
    [
        ("INTEGER", TypeFamily.INTEGER),
        (" bigint ", TypeFamily.INTEGER),
        ("int(11) unsigned", TypeFamily.INTEGER),
        ("DECIMAL(10, 2)", TypeFamily.NUMERIC),
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
