"""``kainite replicate add`` and ``reload``: single tables of a live replica, while all others go on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import psycopg

from kainite import settings
from kainite.base.errors import CatalogueError, KainiteError, SparkUnavailableError
from kainite.base.log_thread import log_in_thread
from kainite.cli.options import properties_option
from kainite.cli.terminal import say
from kainite.replicate import preparation
from kainite.replicate.configured_ends import ends_of
from kainite.replicate.ends import ReplicaEnds, target_session
from kainite.replicate.new_table import make_table, publish, source_table
from kainite.replicate.status import TableState, status_of
from kainite.replicate.tables import ReplicaTable, TableName, described
from kainite.settings import Settings
from kainite_spark.cli import stopping
from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.session import spark_context
from kainite_spark.driver.spark_items import SparkItems
from kainite_spark.load.rounds import make_foreign_keys
from kainite_spark.load.runner import run_steps
from kainite_spark.load.table_job import TableLoadJob
from kainite_spark.replicate_progress import LoadProgress, status_at, tell
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.postgresql.session import PostgresSession
from kainite_spark.targets.postgresql.target import PostgresTarget


@click.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@properties_option
@click.option("--anew", is_flag=True, help="Begin anew where an earlier call was left half done.")
@click.option("--json", "as_json", is_flag=True, help="Print progress, and the result, as lines of JSON.")
def add(tables: tuple[str, ...], properties: Path, anew: bool, as_json: bool) -> int:
    """Adds tables of the source to a live replica; all other tables go on.

    Makes each TABLE in the target, where it is not there, and adds it to the publication; copies it at a point of its
    own, then applies what has changed since. May be killed and started again. A TABLE without a schema is in public.

    \b
    Examples:
      kainite replicate add invoice -p shop.properties
      kainite replicate add sales.invoice sales.invoice_line -p shop.properties
    """
    return _run(tables, properties, _Adding, anew=anew, as_json=as_json)


@click.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@properties_option
@click.option("--anew", is_flag=True, help="Begin anew where an earlier call was left half done.")
@click.option("--json", "as_json", is_flag=True, help="Print progress, and the result, as lines of JSON.")
def reload(tables: tuple[str, ...], properties: Path, anew: bool, as_json: bool) -> int:
    """Empties tables of a live replica and copies them again; all other tables go on.

    Readers see each TABLE empty, then half filled, until it is live again; its foreign keys are off meanwhile. May be
    killed and started again. A TABLE without a schema is in public.

    \b
    Examples:
      kainite replicate reload orders -p shop.properties
      kainite replicate reload orders order_line -p shop.properties --json
    """
    return _run(tables, properties, _Reloading, anew=anew, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Reloading:
    """What a reload does beside the load: nothing; the table must be there on both sides."""

    ends: ReplicaEnds
    table: ReplicaTable

    def check(self, target: psycopg.Connection) -> None:
        if not described(target, [self.table.place]):
            raise CatalogueError(f"the target has no table {self.table.full_name}: kainite replicate add")

    def make(self, _: psycopg.Connection) -> None:
        return

    def publish(self) -> None:
        return


@dataclass(frozen=True, slots=True)
class _Adding:
    """What an addition does beside the load: makes the table, and publishes it."""

    ends: ReplicaEnds
    table: ReplicaTable

    def check(self, target: psycopg.Connection) -> None:
        known = {table.table: table.state for table in status_of(target, self.ends.log_partition).tables}
        if known.get(self.table.full_name) is TableState.LIVE:
            make_foreign_keys(target, self.ends.log_partition)  # a driver may have been killed before it made them
            raise CatalogueError(f"{self.table.full_name} is live already: kainite replicate reload copies it again")

    def make(self, target: psycopg.Connection) -> None:
        make_table(target, self.ends, self.table)

    def publish(self) -> None:
        publish(self.ends, self.table)


def _run(names: Sequence[str], properties: Path, kind: type[_Adding | _Reloading], *, anew: bool, as_json: bool) -> int:
    configured = settings.load(properties, needs=("applicationName",))
    ends = ends_of(configured)
    works = [kind(ends, source_table(ends, _place(name))) for name in dict.fromkeys(names)]
    with target_session(ends.target) as target:
        for work in works:
            work.check(target)
    stop = threading.Event()
    failed: list[str] = []
    try:
        with log_in_thread(), stopping(stop):
            failed = _load(configured, works, stop, LoadProgress(ends, partial(tell, as_json=as_json)), anew=anew)
    except SparkUnavailableError:
        if not stop.is_set():
            raise
    for line in failed:
        say(line, err=True)
    status = status_at(ends)
    tell(status, as_json=as_json)
    wanted = {work.table.full_name for work in works}
    live = {table.table for table in status.tables if table.state is TableState.LIVE}
    return 0 if wanted <= live and not failed else 1


def _load(
    configured: Settings, works: Sequence[_Adding | _Reloading], stop: threading.Event, progress: LoadProgress, *,
    anew: bool,
) -> list[str]:  # fmt: skip
    """Loads one table after the other; returns why tables were not loaded. One that fails keeps no other waiting."""
    apply, ends = configured.apply, works[0].ends
    failed = []
    with (
        spark_context(
            apply.master, f"kainite replicate {configured.leases.application}", stop, apply.python
        ) as context,
        stopping(stop),
    ):
        limits = SparkLimits(apply.stall, float("inf"), configured.child.shutdown_grace)
        runner = SparkItems(context, limits, stop, "kainite replicate load", run_steps)
        runner.begin()
        for work in works:
            if stop.is_set():
                break
            try:
                with target_session(ends.target, "kainite load driver") as connection:
                    made = partial(_made, configured, work)
                    TableLoadJob(
                        ends, work.table.place, connection, runner, partial(_session, configured, ends), work.make,
                        made, stop, progress.look,
                    ).run(anew=anew)  # fmt: skip
            except SparkUnavailableError:
                raise
            except KainiteError as error:
                failed.append(f"{work.table.full_name}: {error}")
    return failed


def _made(configured: Settings, work: _Adding | _Reloading) -> None:
    """Publishes a table, and sees to the triggers that may fire in the target."""
    work.publish()
    catalogue = preparation.target_catalogue(configured, work.ends)
    with closing(open_target(work.ends.target, catalogue, apply=configured.apply)) as target:
        target.prepare(work.ends.log_partition, catalogue)


def _session(configured: Settings, ends: ReplicaEnds) -> PostgresSession:
    catalogue = preparation.target_catalogue(configured, ends)
    target = open_target(ends.target, catalogue, apply=configured.apply)
    assert isinstance(target, PostgresTarget), "ends_of has looked at the kind"
    return target.connect()


def _place(name: str) -> TableName:
    schema, dot, bare = name.partition(".")
    return (schema, bare) if dot else ("public", name)
