"""``tests/kainite_spark/targets/mariadb/test_literals.py`` compares the families with the server."""

from __future__ import annotations

import pytest

from kainite.targets.mariadb.type_families import family_of, is_text
from kainite.uow.catalogue.tables import TypeFamily


@pytest.mark.parametrize(
    ("told", "family"),
    [
        (("bigint", "bigint(20) unsigned", None), TypeFamily.INTEGER),
        (("tinyint", "tinyint(4)", None), TypeFamily.INTEGER),
        (("tinyint", "tinyint(1)", None), TypeFamily.OPAQUE),
        (("decimal", "decimal(12,2)", None), TypeFamily.NUMERIC),
        (("varchar", "varchar(9)", "utf8mb4_bin"), TypeFamily.TEXT),
        (("char", "char(9)", "utf8mb3_general_ci"), TypeFamily.GENERAL_CI),
        (("char", "char(9)", "latin1_swedish_ci"), TypeFamily.SWEDISH_CI),
        (("text", "text", "utf8mb4_0900_ai_ci"), TypeFamily.OPAQUE),
        (("varchar", "varchar(9)", "gbk_bin"), TypeFamily.OPAQUE),
        (("varbinary", "varbinary(9)", None), TypeFamily.BYTES),
        (("json", "json", None), TypeFamily.DOCUMENT),
        (("double", "double", None), TypeFamily.OPAQUE),
        (("enum", "enum('a')", "utf8mb4_bin"), TypeFamily.OPAQUE),
    ],
)
def test_a_family_follows_from_type_and_collation(told: tuple[str, str, str | None], family: TypeFamily) -> None:
    assert family_of(*told) is family


@pytest.mark.parametrize(
    ("told", "text"), [("varchar(9)", True), ("longtext", True), ("binary(9)", False), ("int", False)]
)
def test_texts_are_told_from_other_types(told: str, text: bool) -> None:
    assert is_text(told) is text
