"""Makes and fills the tables of source and target where one of them is MariaDB, before the load begins.

Kainite loads no replica from MariaDB or into it. So both ends are filled with the same rows, those of ``pgbench
--initialize``, while nobody writes, and the extractor begins behind them.
"""

from __future__ import annotations

from contextlib import closing

import psycopg

from kainite.capture.postgresql.offset import Offset
from kainite.capture.postgresql.replication import create_slot
from kainite.extract.offsets.place import Place
from kainite.uow.catalogue.file import write_catalogue
from kainite.uow.catalogue.reflection import reflect
from kainite_demo import mariadb_tables, pgbench
from kainite_demo.reading import is_mariadb
from kainite_demo.run_layout import RunLayout


def has_mariadb(layout: RunLayout) -> bool:
    """Tells whether an end is MariaDB."""
    return is_mariadb(layout.source.url) or is_mariadb(layout.target)


def make_both(layout: RunLayout) -> None:
    """Makes the tables of both ends, and writes the catalogue of the target.

    Raises:
        KainiteError: one of both databases refused.
    """
    keyed = is_mariadb(layout.source.url)
    for url in (layout.source.url, layout.target):
        if is_mariadb(url):
            mariadb_tables.create_tables(url, history_has_key=keyed)
        else:
            pgbench.create_tables(url)
            if keyed:
                _add_key(url)
    write_catalogue(reflect(layout.target), layout.catalogue)


def fill_source(layout: RunLayout, scale: int) -> None:
    """Fills the source; ``scale`` is its branches."""
    (mariadb_tables if is_mariadb(layout.source.url) else pgbench).fill(layout.source.url, scale)


def fill_target(layout: RunLayout, scale: int) -> None:
    """Fills the target as the source, and notes where the extractor begins."""
    if is_mariadb(layout.target):
        mariadb_tables.fill(layout.target, scale)
    else:
        pgbench.fill_tables(layout.target, scale)
    layout.offset_file.create(Place(_here(layout)))


def _here(layout: RunLayout) -> dict[str, object]:
    """Returns the place behind all that the source has."""
    source = layout.source
    if not is_mariadb(source.url):
        pgbench.publish(source.url, source.publication)
        with create_slot(source) as slot:
            return Offset(slot.lsn, 0).as_json()
    from kainite.targets.mariadb.connection import connect

    with closing(connect(source.url)) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        found = cursor.fetchone()
    assert found is not None, "the server has a binlog"
    return {"file": found[0], "position": found[1], "number": 0}


def _add_key(url: str) -> None:
    """Gives the history the key that MariaDB's has."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER TABLE pgbench_history ADD COLUMN hid bigint PRIMARY KEY")
