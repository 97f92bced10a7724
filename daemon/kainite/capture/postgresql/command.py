"""The program ``kainite-extract-postgresql``: the extractor on standard input and standard output.

``kainite extract`` starts it, writes requests to its standard input and reads its answers
(:mod:`kainite.capture.serving`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kainite import __version__
from kainite.base.errors import MissingExtraError
from kainite.base.redaction import learn, secrets_in_url
from kainite.capture.postgresql.replication_frames import parse_lsn
from kainite.capture.serving import answer_requests, errors_told

if TYPE_CHECKING:
    from kainite.capture.postgresql.extractor import Reading

PROGRAM = "kainite-extract-postgresql"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name=PROGRAM)
@click.option("--source", required=True, metavar="URL", help="Connection URL of the source database.")
@click.option("--slot", required=True, help="Replication slot of that database, with the plugin pgoutput.")
@click.option("--publication", required=True, help="Publication that names the tables to capture.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="SCHEMA.TABLE",
    help="Table that the publication must have, at the start and while it is read. May be given several times.",
)
@click.option(
    "--truncate",
    type=click.Choice(["fail", "skip", "apply"]),
    default="fail",
    show_default=True,
    help="What TRUNCATE of a published table does: fail its transaction's unit of work, nothing, or delete all rows of"
    " the table in the target, which must be PostgreSQL.",
)
@click.option(
    "--skip-transaction",
    "passed_over",
    multiple=True,
    metavar="LSN",
    help="Commit LSN of a transaction that is not read: its unit of work fails, under its number, and others go on."
    " The LSN is the last part of the unit's name. May be given several times.",
)
@click.option(
    "--heartbeat",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Write a transaction without changes into the source so often: it becomes a unit of work without deltas, whose"
    " age in the target is the lag of the whole way, also while nothing else commits. PostgreSQL 14 or newer.",
)
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    help="File to which each transaction's name, commit time and number of changes are appended.",
)
def main(
    source: str,
    slot: str,
    publication: str,
    tables: tuple[str, ...],
    truncate: str,
    passed_over: tuple[str, ...],
    heartbeat: float | None,
    journal: Path | None,
) -> None:
    """Gives a PostgreSQL database's committed transactions to `kainite extract`.

    `kainite extract` runs this program (extractorName) and asks it in cycles: set extractorMode=cyclic and
    extractorOffsets=kainite. Each transaction becomes a unit of work with a number of its own, from 1 without gaps.
    PostgreSQL keeps everything that is not on the stream yet, so nothing is lost when either side is killed.

    The source needs wal_level=logical, a publication and a slot; the user needs the attribute REPLICATION. URL is
    any connection string of libpq: a password belongs into ~/.pgpass, as command lines can be read by all users.

    \b
    Settings file:
      extractorName = kainite-extract-postgresql --source postgresql://db/shop --slot shop --publication shop
      extractorMode = cyclic
      extractorOffsets = kainite
      extractorOffsetFile = shop.offset

    \b
    Examples:
      psql -d shop -c "CREATE PUBLICATION shop FOR ALL TABLES"
      psql -d shop -Atc "SELECT lsn FROM pg_create_logical_replication_slot('shop', 'pgoutput', failover => true)"
      kainite extract -p shop.properties --begin '{"lsn":"0/1718490","number":0}'      once, with that lsn
      kainite extract -p shop.properties
    """
    learn(secrets_in_url(source))
    with errors_told(PROGRAM, lambda: _is_away(source)):
        _run(_reading_of(source, slot, publication, tables, truncate, passed_over, heartbeat, journal))


def _is_away(source: str) -> bool:
    from kainite.capture.postgresql.source_reach import is_away

    return is_away(source)


def _reading_of(
    url: str,
    slot: str,
    publication: str,
    tables: tuple[str, ...],
    truncate: str,
    passed_over: tuple[str, ...],
    heartbeat: float | None,
    journal: Path | None,
) -> Reading:
    """Returns what the options say.

    Raises:
        MissingExtraError: psycopg is not installed.
        SourceError: an LSN is none.
    """
    try:
        # Imported here, so that --help and the message below need no database driver.
        from kainite.capture.postgresql.extractor import Reading
        from kainite.capture.postgresql.replication import SourceSlot
        from kainite.capture.truncate import OnTruncate
    except ImportError as error:
        raise MissingExtraError(
            f"reading PostgreSQL needs psycopg ({error}): pip install 'kainite[postgresql]'"
        ) from error
    lsns = frozenset(map(parse_lsn, passed_over))
    return Reading(SourceSlot(url, slot, publication), tables, OnTruncate(truncate), lsns, heartbeat, journal)


def _run(reading: Reading) -> None:
    """Answers requests until the input ends.

    Raises:
        SourceError: a request cannot be answered, or the source broke.
    """
    from kainite.capture.postgresql.extractor import PostgresExtractor

    extractor = PostgresExtractor(reading)
    answer_requests(PROGRAM, extractor.answer, extractor.keep_alive)
    extractor.close()


if __name__ == "__main__":
    main()
