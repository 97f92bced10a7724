"""The source's catalogue tells what the binlog does not say."""

from __future__ import annotations

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.capture.mysql.source_tables import ColumnNow
from support.mariadb_source import execute


@pytest.mark.mariadb
def test_tables_columns_and_character_sets(database: str) -> None:
    execute(
        database,
        "CREATE TABLE t (id int PRIMARY KEY, Made int AS (id) STORED, u uuid UNIQUE, c text COMPRESSED)",
        "CREATE TABLE m (id int) ENGINE=MyISAM",
        "CREATE TABLE v (id int PRIMARY KEY) WITH SYSTEM VERSIONING",
        "CREATE VIEW w AS SELECT 1",
    )
    catalogue = MysqlSourceCatalogue(database)
    found = catalogue.tables(database.split("/")[3].split("?")[0])
    assert found.keys() == {"t", "m", "v"}
    assert found["t"].columns == {
        "id": ColumnNow("int"),
        "made": ColumnNow("int", made=True),
        "u": ColumnNow("uuid", indexed=True),
        "c": ColumnNow("text", compressed=True),
    }
    assert (found["t"].has_key, found["m"].has_key, found["m"].transactional) == (True, False, False)
    assert found["v"].versioned
    assert catalogue.is_mariadb
    for collation, charset in (("utf8mb4_uca1400_ai_ci", "ä𝄞"), ("koi8r_general_ci", "ж"), ("gbk_bin", "中~")):
        number, raw = catalogue.rows(
            "SELECT id, CONVERT(%s USING {}) FROM information_schema.collation_character_set_applicability"
            " WHERE full_collation_name = %s".format(collation.partition("_")[0]),
            [charset, collation],
        )[0]
        stored = catalogue.value(f"SELECT HEX(CONVERT(%s USING {collation.partition('_')[0]}))", [charset])
        assert raw == charset
        assert catalogue.charsets.text(bytes.fromhex(stored), number) == charset
    catalogue.close()


def test_a_session_that_was_closed_is_opened_again(database: str) -> None:
    catalogue = MysqlSourceCatalogue(database)
    execute(database, f"KILL {catalogue.value('SELECT CONNECTION_ID()')}")
    assert catalogue.value("SELECT 1") == 1
    catalogue.close()


def test_what_the_server_refuses_is_a_source_error(database: str) -> None:
    catalogue = MysqlSourceCatalogue(database)
    with pytest.raises(SourceError, match="the source cannot be read"):
        catalogue.value("SELECT nothing_of_the_kind()")
    catalogue.close()
