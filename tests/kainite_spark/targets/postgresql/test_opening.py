from __future__ import annotations

from kainite_spark.targets.opening import open_target
from kainite_spark.targets.postgresql.target import PostgresTarget
from support.tables import SHOP


def test_every_spelling_of_the_scheme_opens_the_address_that_libpq_takes() -> None:
    for scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        target = open_target(f"{scheme}://u:p@host/shop", SHOP)
        assert isinstance(target, PostgresTarget)
        assert target.url == "postgresql://u:p@host/shop"
        assert target.schema.catalogue is SHOP
