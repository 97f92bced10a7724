"""What a look at a MariaDB target finds, beside what ``tests/kainite_spark/test_replicate_into_mariadb.py`` shows."""

from __future__ import annotations

from kainite.replicate.findings import CheckFinding, CheckVerdict
from kainite.replicate.mariadb_checks import LEAST_PACKET, look_at_mariadb_target
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.targets.mariadb.rows import rows_of
from kainite.uow.catalogue.reflection import reflect
from support.mariadb_server import run_script

TABLES = """
    CREATE TABLE above (id int PRIMARY KEY, below int);
    CREATE TABLE below (id int PRIMARY KEY, above int, CONSTRAINT up FOREIGN KEY (above) REFERENCES above (id));
    CREATE TABLE outside (id varchar(20) COLLATE utf8mb4_bin PRIMARY KEY);
    CREATE TABLE child (id int PRIMARY KEY, out_id varchar(20) COLLATE utf8mb4_bin,
                        CONSTRAINT out_key FOREIGN KEY (out_id) REFERENCES outside (id));
"""


def looked(url: str, *tables: str) -> list[CheckFinding]:
    with mariadb_session(url) as connection:
        schema = rows_of(connection, "SELECT DATABASE()")[0][0]
        places = [(schema, table) for table in tables]
        return list(look_at_mariadb_target(connection, places, 2**30, reflect(url), "log/0"))


def test_keys_foreign_keys_and_space_are_told(mariadb: str, mariadb_server: str) -> None:
    run_script(mariadb, TABLES)
    found = {(one.verdict, one.about): f"{one.found} -> {one.mend}" for one in looked(mariadb, "above", "child")}
    told = found[CheckVerdict.WARNING, "foreign keys"]
    assert "out_key of child names outside, which is not loaded: rows without a parent" in told
    assert "needs about 1.00 GiB of disk in /" in found[CheckVerdict.OK, "rows"]
    assert (CheckVerdict.OK, "max_allowed_packet") in found
    assert not any(verdict is CheckVerdict.WRONG for verdict, _ in found)
    [told] = [one.found for one in looked(mariadb, "outside") if one.about == "collation"]
    assert "outside.id is part of a key, and utf8mb4_bin takes texts for equal that differ in spaces at" in told
    run_script(mariadb, "ALTER TABLE above ADD CONSTRAINT down FOREIGN KEY (below) REFERENCES below (id)")
    [(most,)] = rows_in(mariadb_server, "SELECT @@global.max_allowed_packet")
    run_script(mariadb_server, "SET GLOBAL max_allowed_packet = 1048576")
    try:
        found = {(one.verdict, one.about): f"{one.found} -> {one.mend}" for one in looked(mariadb, "above", "below")}
    finally:
        run_script(mariadb_server, f"SET GLOBAL max_allowed_packet = {most}")
    assert "reference each other" in found[CheckVerdict.WRONG, "foreign keys"]
    told = found[CheckVerdict.WRONG, "max_allowed_packet"]
    assert told == (
        f"is 1048576, and an INSERT of many rows has up to {LEAST_PACKET} bytes -> SET GLOBAL max_allowed_packet ="
        f" {4 * LEAST_PACKET}"
    )


def rows_in(url: str, query: str) -> list[tuple[int]]:
    with mariadb_session(url) as connection:
        return rows_of(connection, query)
