"""The program ``kainite-extract-mysql``: the extractor on standard input and standard output.

``kainite extract`` starts it, writes requests to its standard input and reads its answers
(:mod:`kainite.capture.serving`).
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from kainite import __version__
from kainite.base.errors import MissingExtraError
from kainite.base.redaction import learn, secrets_in_url
from kainite.capture.mysql.source_reach import is_away
from kainite.capture.serving import answer_requests, errors_told
from kainite.capture.truncate import OnTruncate

if TYPE_CHECKING:
    from kainite.capture.mysql.extractor import BinlogReading

PROGRAM = "kainite-extract-mysql"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name=PROGRAM)
@click.option("--source", required=True, metavar="URL", help="The source: mariadb://user:password@host:port/database.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="TABLE",
    help="Table that is read, as the server lists it. May be given several times. All tables by default.",
)
@click.option(
    "--truncate",
    type=click.Choice([each.value for each in OnTruncate]),
    default=OnTruncate.FAIL.value,
    show_default=True,
    help="What TRUNCATE of a table does: fail its unit of work, nothing, or delete the rows in the target.",
)
@click.option(
    "--skip-transaction",
    "passed_over",
    multiple=True,
    metavar="GTID",
    help="GTID of a transaction that is not read: its unit of work fails, under its number, and others go on."
    " FILE:POSITION of its beginning where it has no GTID. May be given several times.",
)
@click.option(
    "--heartbeat",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Change the one row of kainite_heartbeat, a table that is made in the source, so often: it becomes a unit of"
    " work without deltas, whose age in the target is the lag of the whole way, also while nothing else commits.",
)
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    help="File to which each transaction's name, commit time and number of changes are appended.",
)
def main(
    source: str,
    tables: tuple[str, ...],
    truncate: str,
    passed_over: tuple[str, ...],
    heartbeat: float | None,
    journal: Path | None,
) -> None:
    """Gives a MariaDB or MySQL database's committed transactions to `kainite extract`.

    `kainite extract` runs this program (extractorName) and asks it in cycles: set extractorMode=cyclic and
    extractorOffsets=kainite. Each transaction becomes a unit of work with a number of its own, from 1 without gaps.
    The server keeps its binlog as long as its own settings say, whether it has been read or not.

    The source needs log_bin, binlog_format=ROW, binlog_row_image=FULL and binlog_row_metadata=FULL; the user needs
    REPLICATION SLAVE, BINLOG MONITOR (MySQL: REPLICATION CLIENT), and SELECT on the database. Command lines can be read
    by all users: the variable KAINITE_SOURCE_PASSWORD, where it is set, is the password.

    \b
    Settings file:
      extractorName = kainite-extract-mysql --source mariadb://kainite@db/shop
      extractorMode = cyclic
      extractorOffsets = kainite
      extractorOffsetFile = shop.offset

    \b
    Examples:
      mariadb -e 'SHOW MASTER STATUS'
      kainite extract -p shop.properties --begin '{"file":"binlog.000001","position":4711,"number":0}'      once
      kainite extract -p shop.properties
    """
    url = with_password(source, os.environ.get("KAINITE_SOURCE_PASSWORD", ""))
    learn(secrets_in_url(url))
    with errors_told(PROGRAM, partial(is_away, url)):
        _run(_reading_of(url, tables, OnTruncate(truncate), passed_over, heartbeat, journal))


def with_password(url: str, password: str) -> str:
    """Returns the address with a password, where it has none."""
    scheme, mark, rest = url.partition("://")
    role, at, place = rest.partition("@")
    if not password or not at or ":" in role:
        return url
    return f"{scheme}{mark}{role}:{quote(password, safe='')}@{place}"


def _reading_of(
    url: str,
    tables: tuple[str, ...],
    on_truncate: OnTruncate,
    passed_over: tuple[str, ...],
    heartbeat: float | None,
    journal: Path | None,
) -> BinlogReading:
    """Returns what the options say.

    Raises:
        MissingExtraError: PyMySQL is not installed.
    """
    try:
        # Imported here, so that --help and the message below need no database driver.
        from kainite.capture.mysql.extractor import BinlogReading
    except ImportError as error:
        raise MissingExtraError(f"reading MariaDB needs PyMySQL ({error}): pip install 'kainite[mariadb]'") from error
    return BinlogReading(url, tables, on_truncate, frozenset(passed_over), heartbeat, journal)


def _run(reading: BinlogReading) -> None:
    """Answers requests until the input ends.

    Raises:
        SourceError: a request cannot be answered, or the source broke.
    """
    from kainite.capture.mysql.extractor import MysqlExtractor

    extractor = MysqlExtractor(reading)
    answer_requests(PROGRAM, extractor.answer, lambda: None)
    extractor.close()


if __name__ == "__main__":
    main()
