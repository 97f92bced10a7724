from __future__ import annotations

from contextlib import closing

from kainite.capture.mysql.silent_actions import SilentAction, silent_actions
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from support.mariadb_source import execute, source_database


def test_foreign_keys_that_act_are_listed_and_no_others(mariadb_source_server: str) -> None:
    with source_database(mariadb_source_server) as url:
        execute(
            url, "CREATE TABLE item (id INT PRIMARY KEY)",
            "CREATE TABLE line (id INT PRIMARY KEY, a INT, b INT, c INT, d INT,"
            " CONSTRAINT a FOREIGN KEY (a) REFERENCES item (id), "
            " CONSTRAINT b FOREIGN KEY (b) REFERENCES item (id) ON DELETE CASCADE,"
            " CONSTRAINT c FOREIGN KEY (c) REFERENCES line (id) ON UPDATE SET NULL,"
            " CONSTRAINT d FOREIGN KEY (d) REFERENCES item (id) ON DELETE NO ACTION ON UPDATE RESTRICT)",
        )  # fmt: skip
        database = url.split("/")[3].split("?")[0]
        with closing(MysqlSourceCatalogue(url)) as catalogue:
            found = list(silent_actions(catalogue, database))
    assert found == [SilentAction("b", "line", "item"), SilentAction("c", "line", "line")]
    assert str(found[0]) == "line (b)"
