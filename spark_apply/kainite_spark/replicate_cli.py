"""``kainite replicate``: from an existing PostgreSQL or MariaDB database to a replica of it."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table as RichTable
from rich.text import Text

from kainite import settings
from kainite.aws import clients as aws
from kainite.base.errors import SparkUnavailableError
from kainite.base.log_thread import log_in_thread
from kainite.cli.lazy_group import ListedGroup
from kainite.cli.options import properties_option
from kainite.cli.terminal import say, say_json, stdout
from kainite.replicate import preparation
from kainite.replicate.any_ends import any_ends_of
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_gaps import gaps_of
from kainite.replicate.binlog_preparation import look_at_binlog, write_offset, write_tables_of_mariadb
from kainite.replicate.ends import LoadEnds, ReplicaEnds, is_mariadb
from kainite.replicate.findings import CheckFinding, is_ready
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_target import load_session
from kainite.replicate.mariadb_preparation import look_into_mariadb, write_into_mariadb
from kainite.replicate.new_file import write_properties
from kainite.replicate.standby_checks import standbys_of
from kainite.replicate.status import ReplicaStatus, one_line
from kainite.replicate.verify_report import summary_of
from kainite.settings import Settings
from kainite.store.dynamodb import DynamoDBStore
from kainite_spark.cli import stopping
from kainite_spark.configured_target import check_emptied, tables_taken
from kainite_spark.cutover_cli import cutover
from kainite_spark.driver.patience import at_the_start
from kainite_spark.load.findings_table import print_findings
from kainite_spark.load.hook_checks import look_at_hooks
from kainite_spark.load.job import LoadJob
from kainite_spark.load.takeover import take_over
from kainite_spark.replicate_progress import LoadProgress, status_at, tell
from kainite_spark.replicate_tables import add, reload
from kainite_spark.replicate_way import copying
from kainite_spark.targets.opening import open_target

if TYPE_CHECKING:
    from kainite.replicate.load_target import LoadSession


@click.group(cls=ListedGroup)
def replicate() -> None:
    """Makes a replica of an existing PostgreSQL or MariaDB database, and tells how far it is.

    \b
    Examples:
      kainite replicate init -p shop.properties --source postgresql:///shop --target postgresql:///replica --stream shop
      kainite replicate init -p shop.properties --write
      kainite replicate load -p shop.properties
      kainite replicate status -p shop.properties
      kainite replicate add invoice -p shop.properties
      kainite replicate reload orders -p shop.properties
      kainite replicate cutover -p shop.properties
    """


replicate.add_command(add)
replicate.add_command(reload)
replicate.add_command(cutover)


@replicate.command()
@properties_option
@click.option(
    "--write", is_flag=True, help="Make what is missing: publication, slot, offset file, the target's tables."
)
@click.option("--source", metavar="URL", help="With a FILE that is not there yet: the source, for the file.")
@click.option("--target", metavar="URL", help="The target, for the file.")
@click.option("--stream", metavar="NAME", help="The Kinesis stream, for the file; also the name of all else.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def init(
    properties: Path, write: bool, source: str | None, target: str | None, stream: str | None, as_json: bool
) -> int:
    """Looks at both databases and says what is missing, each with the statement that mends it.

    Exit code 1 where something must be mended before a load. With --source, --target and --stream, and a FILE that is
    not there yet, the file is written first. From MariaDB into PostgreSQL --write makes the offset file alone.

    \b
    Examples:
      kainite replicate init -p shop.properties            what is missing
      kainite replicate init -p shop.properties --write    make it
    """
    if source or target or stream:
        write_properties(properties, source, target, stream)
    configured = settings.load(properties, needs=("applicationName",))
    done = list(_write(configured)) if write else []
    findings = _look(configured)
    if as_json:
        say_json({"ready": is_ready(findings), "done": done, "findings": [asdict(f) for f in findings]}, indent=True)
    else:
        for line in done:
            say(line)
        print_findings(findings)
    return 0 if is_ready(findings) else 1


@replicate.command()
@properties_option
@click.option("--anew", is_flag=True, help="Load everything again, also where the target is live or went back.")
@click.option("--json", "as_json", is_flag=True, help="Print progress, and the result, as lines of JSON.")
def load(properties: Path, anew: bool, as_json: bool) -> int:
    """Copies all published tables at one consistent point, in parallel; may be killed and started again.

    The extractor may run meanwhile. kainite apply waits until the target is live, and then applies what has committed
    since the point.

    \b
    Examples:
      kainite replicate load -p shop.properties
      kainite replicate load -p shop.properties --json     progress as lines of JSON
    """
    configured = settings.load(properties, needs=("applicationName",))
    ends = any_ends_of(configured)
    stop = threading.Event()
    told = partial(tell, as_json=as_json)
    try:
        with log_in_thread(), stopping(stop):
            _load(configured, ends, stop, told, anew=anew)
    except SparkUnavailableError:
        if not stop.is_set():
            raise
    status = status_at(ends)
    told(status)
    return 0 if status.state is LoadState.LIVE else 1


@replicate.command()
@properties_option
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
def status(properties: Path, as_json: bool) -> int:
    """Shows the state of the target and of each table; exit code 1 until the target is consistent.

    Of a PostgreSQL source with standbys it also tells what the promotion of one would do to the extraction; of a
    MariaDB source, which tables have a gap, since the extraction did not read them for a while.

    \b
    Examples:
      kainite replicate status -p shop.properties
    """
    ends = any_ends_of(settings.load(properties, needs=("applicationName",)))
    found = status_at(ends)
    if isinstance(ends, ReplicaEnds) and found.state is not LoadState.CUT_OVER:
        found = replace(found, standbys=standbys_of(ends.source))
    if isinstance(ends, BinlogEnds):
        found = _with_gaps(found, ends)
    if as_json:
        say_json(found.as_json(), indent=True)
    else:
        _print_status(found)
    return 0 if found.consistent else 1


def _with_gaps(found: ReplicaStatus, ends: BinlogEnds) -> ReplicaStatus:
    """Returns a status with the tables of which changes are missing: with such a target is no state of the source."""
    with load_session(ends.target, "kainite replicate status") as target:
        gaps = tuple(gaps_of(ends, target))
    return replace(found, gaps=gaps, consistent=found.consistent and is_ready(gaps))


def _write(configured: Settings) -> Iterator[str]:
    ends = any_ends_of(configured)
    if isinstance(ends, BinlogEnds):
        yield from write_offset(ends)
        if is_mariadb(ends.target):
            yield from write_tables_of_mariadb(configured, ends)
    elif is_mariadb(ends.target):
        yield from write_into_mariadb(configured, ends)
    else:
        yield from preparation.write(configured)


def _look(configured: Settings) -> list[CheckFinding]:
    ends = any_ends_of(configured)
    if isinstance(ends, BinlogEnds):
        found = look_at_binlog(configured, ends)
    elif is_mariadb(ends.target):
        found = look_into_mariadb(configured, ends)
    else:
        found = preparation.look(configured)
    return [*found, *look_at_hooks(configured, ends)]


def _load(
    configured: Settings,
    ends: ReplicaEnds | BinlogEnds,
    stop: threading.Event,
    tell: Callable[[ReplicaStatus], None],
    *,
    anew: bool,
) -> None:
    if status_at(ends).state in (None, LoadState.PREPARED):
        preparation.check_ready(_look(configured))
    catalogue = partial(preparation.target_catalogue, configured, ends)
    found = catalogue()
    with closing(open_target(ends.target, found, apply=configured.apply)) as target:
        target.prepare(ends.log_partition, found)
        target.take_tables(tables_taken(configured, found))
    with (
        copying(configured, ends, stop) as (source, runner),
        load_session(ends.target, "kainite load driver") as connection,
    ):
        job = LoadJob(source, connection, runner, catalogue, stop, LoadProgress(ends, tell).look)
        job.check_emptied = partial(check_emptied, configured, found)
        if anew:
            job.take_over = partial(_take_over, configured, ends, connection, stop)
        job.run(anew=anew)


def _take_over(configured: Settings, ends: LoadEnds, connection: LoadSession, stop: threading.Event) -> int | None:
    """Lets a load take the place of a target that went back."""
    store = DynamoDBStore(aws.client("dynamodb", configured.aws), configured.log.table)
    at_the_start(store.create, stop, "the log's table")
    owner = f"load:{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    partition, lease = configured.log.partition, configured.apply.lease
    return take_over(store, partition, connection, ends.log_partition, owner, lease, stop)


def _print_status(found: ReplicaStatus) -> None:
    say(one_line(found))
    if found.position is not None:
        said = "each state from here on is one that the source had" if found.consistent else "not consistent yet"
        say(f"consistent point {found.position} of {found.source}: {said}")
    table = RichTable(box=None, header_style="bold", pad_edge=False)
    for column in ("table", "state", "ranges", "rows", "MiB", "held", "cause"):
        table.add_column(column, overflow="fold")
    for one in found.tables:
        table.add_row(Text(one.table), one.state, f"{one.ranges_done}/{one.ranges}", f"{one.rows:,}",
                      f"{one.bytes / 2**20:,.1f}", f"{one.held:,}", Text(one.cause or ""))  # fmt: skip
    if found.tables:
        stdout().print(table)
    for line in found.foreign_keys:
        say(f"off until both tables are live: foreign key {line}")
    for line in found.refused:
        say(f"refused: {line}")
    if found.verified is not None:
        say(f"compared with the source at {found.verified.ended_at}: {summary_of(found.verified)}")
    if found.standbys or found.gaps:
        print_findings([*found.standbys, *found.gaps])
