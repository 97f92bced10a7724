"""``kainite replicate add`` and ``reload``: single tables of a live replica, while all others go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kainite import settings
from kainite.base.errors import CatalogueError, KainiteError, SparkUnavailableError
from kainite.base.log_thread import log_in_thread
from kainite.cli.options import properties_option
from kainite.cli.terminal import say
from kainite.replicate import preparation
from kainite.replicate.any_ends import any_ends_of
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_table import paired_table
from kainite.replicate.ends import LoadEnds, ReplicaEnds, is_mariadb
from kainite.replicate.load_target import has_table, load_session, status_in
from kainite.replicate.new_table import making, publish, source_table
from kainite.replicate.status import TableState
from kainite.replicate.tables import TableName
from kainite.settings import Settings
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.cli import stopping
from kainite_spark.configured_target import check_emptied, tables_taken
from kainite_spark.load.catch_up import CatchingUp
from kainite_spark.load.rounds import make_foreign_keys
from kainite_spark.load.table_job import TableLoadJob
from kainite_spark.replicate_progress import LoadProgress, status_at, tell
from kainite_spark.replicate_way import copying
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.postgresql.session import PostgresSession

if TYPE_CHECKING:
    from kainite.replicate.load_target import LoadSession


@click.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@properties_option
@click.option("--anew", is_flag=True, help="Begin anew where an earlier call was left half done.")
@click.option("--json", "as_json", is_flag=True, help="Print progress, and the result, as lines of JSON.")
def add(tables: tuple[str, ...], properties: Path, anew: bool, as_json: bool) -> int:
    """Adds tables of the source to a live replica; all other tables go on.

    Makes each TABLE in the target, where it is not there, and adds it to the publication; copies it at a point of its
    own, then applies what has changed since. May be killed and started again. A TABLE without a schema is in public.

    From MariaDB a TABLE is named as the source lists it. It must be in the target already, and --table of extractorName
    must name it, where that names any.

    \b
    Examples:
      kainite replicate add invoice -p shop.properties
      kainite replicate add sales.invoice sales.invoice_line -p shop.properties
    """
    return _run(tables, properties, adds=True, anew=anew, as_json=as_json)


@click.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@properties_option
@click.option("--anew", is_flag=True, help="Begin anew where an earlier call was left half done.")
@click.option("--json", "as_json", is_flag=True, help="Print progress, and the result, as lines of JSON.")
def reload(tables: tuple[str, ...], properties: Path, anew: bool, as_json: bool) -> int:
    """Empties tables of a live replica and copies them again; all other tables go on.

    Readers see each TABLE empty, then half filled, until it is live again; its foreign keys are off meanwhile. May be
    killed and started again. A TABLE without a schema is in public; of MariaDB it is named as the source lists it.

    \b
    Examples:
      kainite replicate reload orders -p shop.properties
      kainite replicate reload orders order_line -p shop.properties --json
    """
    return _run(tables, properties, adds=False, anew=anew, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _TableWork:
    """What is done beside the load of a table.

    Attributes:
        table: its schema and name in the target.
        make: makes it in the target where it is not there.
        publish: has its changes sent from now on.
    """

    table: TableName
    make: Callable[[Any], None] = lambda _: None
    publish: Callable[[], None] = lambda: None

    @property
    def full_name(self) -> str:
        """Returns the table's name as people read it."""
        return ".".join(self.table)


def _works(
    configured: Settings, ends: ReplicaEnds | BinlogEnds, names: Iterable[str], *, adds: bool
) -> list[_TableWork]:
    """Returns what is done for each table; raises SourceError or CatalogueError for one that is not there."""
    if isinstance(ends, BinlogEnds):
        target = preparation.target_catalogue(configured, ends)
        return [_TableWork(paired_table(ends, name, target).place) for name in dict.fromkeys(names)]
    tables = [source_table(ends, _place(name)) for name in dict.fromkeys(names)]
    if not adds:
        return [_TableWork(table.place) for table in tables]
    catalogue = partial(preparation.target_catalogue, configured, ends)
    return [_TableWork(table.place, making(ends, table, catalogue), partial(publish, ends, table)) for table in tables]


def _check(target: LoadSession, log_partition: str, work: _TableWork, *, adds: bool) -> None:
    """Raises CatalogueError where a table that is added is live, or the target has none that is loaded again."""
    if not adds:
        if not has_table(target, work.table):
            raise CatalogueError(f"the target has no table {work.full_name}: kainite replicate add")
        return
    known = {table.table: table.state for table in status_in(target, log_partition).tables}
    if known.get(work.full_name) is TableState.LIVE:
        make_foreign_keys(target, log_partition)  # a driver may have been killed before it made them
        raise CatalogueError(f"{work.full_name} is live already: kainite replicate reload copies it again")


def _run(names: Sequence[str], properties: Path, *, adds: bool, anew: bool, as_json: bool) -> int:
    configured = settings.load(properties, needs=("applicationName",))
    ends = any_ends_of(configured)
    works = _works(configured, ends, names, adds=adds)
    with load_session(ends.target, "kainite replicate") as target:
        for work in works:
            _check(target, ends.log_partition, work, adds=adds)
    check_emptied(configured, _prepared(configured, ends), [work.table for work in works])
    stop = threading.Event()
    failed: list[str] = []
    try:
        with log_in_thread(), stopping(stop):
            progress = LoadProgress(ends, partial(tell, as_json=as_json))
            failed = _load(configured, ends, works, stop, progress, anew=anew)
    except SparkUnavailableError:
        if not stop.is_set():
            raise
    for line in failed:
        say(line, err=True)
    status = status_at(ends)
    tell(status, as_json=as_json)
    live = {table.table for table in status.tables if table.state is TableState.LIVE}
    return 0 if {work.full_name for work in works} <= live and not failed else 1


def _load(
    configured: Settings, ends: ReplicaEnds | BinlogEnds, works: Sequence[_TableWork], stop: threading.Event,
    progress: LoadProgress, *, anew: bool,
) -> list[str]:  # fmt: skip
    """Loads one table after the other; returns why tables were not loaded. One that fails keeps no other waiting."""
    failed = []
    catalogue = partial(preparation.target_catalogue, configured, ends)
    with copying(configured, ends, stop) as (source, runner):
        for work in works:
            if stop.is_set():
                break
            try:
                with load_session(ends.target, "kainite load driver") as connection:
                    made = partial(_made, configured, ends, work)
                    TableLoadJob(
                        source, work.table, connection, runner, partial(_session, configured, ends), catalogue,
                        work.make, made, stop, progress.look,
                    ).run(anew=anew)  # fmt: skip
            except SparkUnavailableError:
                raise
            except KainiteError as error:
                failed.append(f"{work.full_name}: {error}")
    return failed


def _made(configured: Settings, ends: LoadEnds, work: _TableWork) -> None:
    """Publishes a table, and sees to the triggers that may fire in the target."""
    work.publish()
    _prepared(configured, ends)


def _prepared(configured: Settings, ends: LoadEnds) -> Catalogue:
    """Takes the target's tables for the log, and sees to their triggers; returns the tables.

    Raises:
        CatalogueError: another log writes one of them, or a trigger may not fire.
    """
    catalogue = preparation.target_catalogue(configured, ends)
    with closing(open_target(ends.target, catalogue, apply=configured.apply)) as target:
        target.prepare(ends.log_partition, catalogue)
        target.take_tables(tables_taken(configured, catalogue))
    return catalogue


def _session(configured: Settings, ends: LoadEnds) -> CatchingUp:
    catalogue = preparation.target_catalogue(configured, ends)
    session = open_target(ends.target, catalogue, apply=configured.apply).connect()
    if is_mariadb(ends.target):
        from kainite_spark.targets.mariadb.session import MariadbSession

        assert isinstance(session, MariadbSession), "the ends have looked at the kind"
        return session
    assert isinstance(session, PostgresSession), "the ends have looked at the kind"
    return session


def _place(name: str) -> TableName:
    schema, dot, bare = name.partition(".")
    return (schema, bare) if dot else ("public", name)
