"""Makes the target's tables, and brings the filled source's rows to them before the load begins.

A PostgreSQL source is replicated as ``kainite replicate init --write`` and ``load`` do it, in this process and with
threads instead of Spark: publication, tables, slot, offset file, and the copy at one consistent point. The tables come
before the source is filled, and the slot behind that, so that all processes start meanwhile and wait for the load.

Aurora DSQL has no such point (docs/replicate.md): its double starts with a copy of what the slot does not send.
"""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial

from kainite import settings
from kainite.capture.postgresql.offset import Offset
from kainite.capture.postgresql.replication import create_slot
from kainite.extract.offsets.place import Place
from kainite.replicate import preparation
from kainite.replicate.configured_ends import ends_of
from kainite.replicate.ends import target_session
from kainite.settings import Settings
from kainite.uow.catalogue.file import write_catalogue
from kainite.uow.catalogue.reflection import reflect
from kainite_demo import pgbench
from kainite_demo.postgres_server import programs
from kainite_demo.run_layout import RunLayout, SourceKind
from kainite_spark.load.copy_source import PostgresCopySource
from kainite_spark.load.job import LoadJob
from kainite_spark.load.runner import ThreadStepRunner
from kainite_spark.targets.opening import open_target


def make_tables(layout: RunLayout, source: SourceKind) -> None:
    """Makes the target's tables, those of an empty source, and writes the catalogue: their keys follow with the rows.

    Raises:
        KainiteError: one of both databases refused.
    """
    pgbench.create_tables(layout.source.url)
    write_catalogue(reflect(layout.source.url), layout.catalogue)
    if source is SourceKind.POSTGRESQL:
        os.environ["PATH"] = f"{programs()}{os.pathsep}{os.environ['PATH']}"  # of pg_dump
        list(preparation.write_tables(_settings(layout)))
    else:
        pgbench.create_tables(layout.target)


def bring_rows(layout: RunLayout, source: SourceKind) -> None:
    """Makes publication, slot and offset file, and copies all rows that the slot does not send.

    Raises:
        KainiteError: one of both databases refused.
    """
    if source is SourceKind.POSTGRESQL:
        _replicate(layout)
    else:
        _copy(layout)


def _replicate(layout: RunLayout) -> None:
    configured = _settings(layout)
    list(preparation.write(configured))
    ends = ends_of(configured)
    catalogue = partial(preparation.target_catalogue, configured, ends)
    found = catalogue()
    with closing(open_target(ends.target, found, apply=configured.apply)) as target:
        target.prepare(ends.log_partition, found)
    with target_session(ends.target, "kainite load driver") as connection:
        LoadJob(PostgresCopySource(ends), connection, ThreadStepRunner(), catalogue).run()
        connection.execute("ANALYZE")


def _settings(layout: RunLayout) -> Settings:
    return settings.load(layout.settings, needs=("applicationName",))


def _copy(layout: RunLayout) -> None:
    pgbench.publish(layout.source.url, layout.source.publication)
    with create_slot(layout.source) as slot:
        pgbench.copy_tables(layout.source.url, layout.target, slot.snapshot)
    layout.offset_file.create(Place(Offset(slot.lsn, 0).as_json()))
