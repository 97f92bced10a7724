"""Which tables a log takes: all of its catalogue but those that it shares, whatever the catalogue calls them."""

from __future__ import annotations

import pytest

from kainite.base.errors import CatalogueError
from kainite.uow.catalogue.tables import Catalogue, Table
from kainite_spark.targets.log_tables import log_tables

SHOP = Catalogue(
    {name: Table(name, schema, {}) for name, schema in (("item", "public"), ("crm.person", "crm"))},
    "public",
)


def test_tables_have_full_names_whichever_schema_is_the_default_one() -> None:
    taking = log_tables("log/0", "log/0/shop", SHOP, ())
    assert taking.full_names == ["crm.person", "public.item"]


@pytest.mark.parametrize("name", ["item", "public.item"])
def test_a_shared_table_is_not_taken(name: str) -> None:
    assert log_tables("log/0", "log/0", SHOP, [name]).full_names == ["crm.person"]


def test_a_shared_table_that_is_not_there_is_refused() -> None:
    with pytest.raises(CatalogueError, match="targetSharedTables: the target has no table items"):
        log_tables("log/0", "log/0", SHOP, ["items"])


def test_the_refusal_names_table_and_both_logs_and_what_mends_it() -> None:
    with pytest.raises(CatalogueError) as refused:
        log_tables("log/1", "log/1", SHOP, ()).check({"public.item": "log/0", "crm.person": "log/0"})
    told = str(refused.value)
    assert told.startswith("table crm.person (and 1 more) of the target is written by the log log/0, and log/1 would")
    assert "target.NAME.tables" in told
    assert "targetSharedTables" in told
    assert "DELETE FROM kainite_log_table WHERE log = 'log/0'" in told
