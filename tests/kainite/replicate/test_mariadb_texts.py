"""Both types decide how texts of a source are compared with those of a MariaDB target."""

from __future__ import annotations

import pytest

from kainite.replicate.canonical_texts import TextKind
from kainite.replicate.mariadb_texts import kind_into_mariadb


@pytest.mark.parametrize(
    ("source", "target", "kind"),
    [
        ("integer", "int", TextKind.NUMBER), ("numeric(10,2)", "decimal", TextKind.NUMBER),
        ("boolean", "tinyint", TextKind.NUMBER), ("real", "float", TextKind.SINGLE),
        ("float", "float", TextKind.SINGLE),
        ("double precision", "float", TextKind.NUMBER), ("real", "double", TextKind.DOUBLE),
        ("double", "double", TextKind.DOUBLE), ("numeric", "double", TextKind.NUMBER),
        ("text", "longtext", TextKind.AS_IT_IS), ("character(7)", "char", TextKind.PADDED),
        ("character(7)", "varchar", TextKind.AS_IT_IS), ("jsonb", "longtext", TextKind.AS_IT_IS),
        ("bytea", "longblob", TextKind.BYTES), ("bytea", "binary", TextKind.PADDED_BYTES),
        ("date", "date", TextKind.DAY), ("date", "datetime", TextKind.DAY), ("datetime", "date", TextKind.DAY),
        ("timestamp(3) with time zone", "datetime", TextKind.MOMENT), ("timestamp", "timestamp", TextKind.MOMENT),
        ("time without time zone", "time", TextKind.MOMENT), ("bit(4)", "bit", TextKind.BITS),
        ("bit varying(4)", "bit", TextKind.AS_IT_IS), ("uuid", "uuid", TextKind.UUID),
        ("inet", "inet6", TextKind.ADDRESS),
        ("year", "year", TextKind.NUMBER), ("enum", "enum", TextKind.AS_IT_IS),
    ],
)  # fmt: skip
def test_both_types_decide(source: str, target: str, kind: TextKind) -> None:
    assert kind_into_mariadb(source, target) is kind
