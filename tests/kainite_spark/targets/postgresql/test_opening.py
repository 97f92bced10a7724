from __future__ import annotations

import traceback

import pytest

from kainite.base.errors import SettingsError, TargetError
from kainite.base.redaction import learn
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.postgresql.target import PostgresTarget
from support.tables import SHOP


def test_every_spelling_of_the_scheme_opens_the_address_that_libpq_takes() -> None:
    for scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        target = open_target(f"{scheme}://u:p@host/shop", SHOP)
        assert isinstance(target, PostgresTarget)
        assert target.url == "postgresql://u:p@host/shop"
        assert target.schema.catalogue is SHOP


@pytest.mark.parametrize(
    "url", ["postgresql://u:Tr0ub@ador@127.0.0.1:1/d", "postgresql://u:Tr0ub%zzador@127.0.0.1:1/d"]
)
def test_an_address_that_a_driver_would_quote_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsError) as refused:
        open_target(url, SHOP).prepare("0", SHOP)
    assert "ador" not in "".join(traceback.format_exception(refused.value))


def test_what_the_server_says_of_a_secret_is_hidden(postgres: str) -> None:
    learn(["sEcret-of-9-kinds"])
    target = open_target(f"{postgres}&options=-c%20search_path%3Dpublic&application_name=sEcret-of-9-kinds", SHOP)
    with pytest.raises(TargetError) as failed:
        open_target(postgres.replace("/test_", "/sEcret-of-9-kinds_"), SHOP).prepare("0", SHOP)
    assert "sEcret" not in str(failed.value)
    target.prepare("0", SHOP)
