"""``kainite replicate cutover``: makes a replica a database that others write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from kainite import settings
from kainite.aws import clients as aws
from kainite.base.log_thread import log_in_thread
from kainite.base.words import counted
from kainite.cli.options import properties_option
from kainite.cli.terminal import say, say_json
from kainite.replicate.any_ends import any_ends_of
from kainite.replicate.applied_point import LogStanding, read_standing, stuck_units
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.ends import LoadEnds, is_mariadb
from kainite.replicate.findings import CheckFinding, fine, is_ready, some_names, warning, wrong
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_target import driven_ledger, load_in, load_session, status_in
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.replicate.preparation import target_catalogue
from kainite.replicate.source_triggers import lacking_triggers, look_at_triggers
from kainite.settings import Settings, UowOrder
from kainite.store.dynamodb import DynamoDBStore
from kainite_spark.cli import stopping
from kainite_spark.load.cutover import CutOver, CutOverDone
from kainite_spark.load.cutover_sequences import sequences_between
from kainite_spark.load.cutover_source import BinlogCutOverSource, CutOverSource, PostgresCutOverSource
from kainite_spark.load.findings_table import print_findings

_NAME: Final = "kainite replicate"
_WAIT_S: Final = 600.0
_TELL_EVERY: Final = 10


@click.command()
@properties_option
@click.option("--check", is_flag=True, help="Only say what is in the way; change nothing.")
@click.option("--undo", is_flag=True, help="Take a cut-over back: units are applied again. Nobody may have written.")
@click.option("--wait", type=click.FloatRange(min=0, min_open=True), default=_WAIT_S, show_default=True,
              metavar="SECONDS", help="How long to wait until everything is applied.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print progress, and the result, as lines of JSON.")
def cutover(properties: Path, check: bool, undo: bool, wait: float, as_json: bool) -> int:
    """Makes the target the database that is written, when the source is closed to writers.

    Looks whether anybody may write in the source, waits until the target has all that has committed there, sets the
    target's sequences, switches on the triggers that Kainite has switched off, and lets no apply job in any more. The
    target is a replica as before until the last step. May be killed, and started again. Source and target may be
    PostgreSQL or MariaDB.

    \b
    Examples:
      kainite replicate cutover -p shop.properties --check   what is in the way
      kainite replicate cutover -p shop.properties
      kainite replicate cutover -p shop.properties --undo    before anybody has written in the target
    """
    configured = settings.load(properties, needs=("applicationName",))
    source = _source_of(configured)
    ends = source.ends
    if undo:
        return _undo(ends, as_json=as_json)
    if _state(ends) is LoadState.CUT_OVER:
        _say({"cut_over": True, "already": True}, "the target was cut over before: it may be written", as_json=as_json)
        return 0
    lacking = _lacking(configured, source)
    findings = [*_look(configured, source), *look_at_triggers(lacking)]
    ready = is_ready(findings)
    if as_json:
        say_json({"ready": ready, "findings": [asdict(finding) for finding in findings]})
    else:
        print_findings(findings)
    if check or not ready:
        return 0 if ready else 1
    return _cut_over(configured, source, lacking, wait, as_json=as_json)


def _source_of(configured: Settings) -> CutOverSource:
    ends = any_ends_of(configured)
    sequences = sequences_between(ends, target_catalogue(configured, ends))
    return (
        BinlogCutOverSource(ends, sequences) if isinstance(ends, BinlogEnds) else PostgresCutOverSource(ends, sequences)
    )


def _lacking(configured: Settings, source: CutOverSource) -> list[str]:
    """Returns the triggers that the target lacks, where Kainite could not switch them off."""
    if not is_mariadb(source.ends.target):
        return []
    triggers = source.triggers()
    with mariadb_session(source.ends.target) as target:
        return lacking_triggers(target, target_catalogue(configured, source.ends), triggers)


def _look(configured: Settings, source: CutOverSource) -> Iterator[CheckFinding]:
    """Yields what is in the way of a cut-over."""
    if configured.uow.order is not UowOrder.DENSE:
        yield wrong("settings", "units are not applied in the order of their commits", "uowOrder = dense")
    yield from source.look()
    with load_session(source.ends.target, _NAME) as target:
        load = load_in(target, source.ends.log_partition)
        if load is None or load.state is not LoadState.LIVE:
            yield wrong("target", "it is not live", f"kainite replicate load -p {configured.path}")
        elif not (status := status_in(target, source.ends.log_partition)).consistent:
            yield wrong("target", "tables are not live yet", f"kainite replicate status -p {configured.path}")
        else:
            yield fine("target", "it is live")
            if off := status.foreign_keys:
                yield warning(
                    "foreign keys",
                    f"off since a table was loaded by itself: {some_names(off)}; they are made"
                    " before the cut-over, as far as the target takes them",
                    f"kainite replicate load -p {configured.path} makes them, or tells what is in the way",
                )
    if stuck := stuck_units(_store(configured), configured.log.partition):
        yield wrong("units", f"not applied before a person decides: {some_names(stuck)}",
                    f"kainite uow retry, or discard, -p {configured.path}")  # fmt: skip


def _cut_over(
    configured: Settings, source: CutOverSource, lacking: Sequence[str], wait: float, *, as_json: bool
) -> int:
    stop = threading.Event()
    log = partial(read_standing, _store(configured), configured.log.partition)
    with log_in_thread(), stopping(stop):
        done = CutOver(source, log, stop, _telling(as_json=as_json), wait).run()
    if done is None:
        _say({"cut_over": False}, "stopped: the target is a replica as before", as_json=as_json)
        return 1
    told = {"cut_over": True, **asdict(done), "lacking_triggers": lacking}
    _say(told, _text(done, source, lacking), as_json=as_json)
    return 0


def _undo(ends: LoadEnds, *, as_json: bool) -> int:
    with load_session(ends.target, _NAME) as connection:
        ledger = driven_ledger(connection, ends.log_partition)
        undone = None if ledger.found() is None else ledger.make_live_again()
    if undone is None:
        _say({"undone": False}, "the target was not cut over", as_json=as_json)
        return 0
    told = "the target is a replica again: units are applied"
    told += (
        ". Triggers that were made in it since then keep the apply job from its start: drop them"
        if is_mariadb(ends.target)
        else ", and triggers are off from the apply job's next start on"
    )
    since = undone.since
    _say({"undone": True, "transactions_since": since}, f"{told}. {_written(since)}", as_json=as_json)
    return 0


def _written(since: int | None) -> str:
    """Tells what is known of writes between a cut-over and its undoing."""
    if since is None:
        return (
            "The target's server has no binlog that tells whether anybody has written since the cut-over: if anybody"
            " wrote a replicated table, the target differs. kainite verify tells"
        )
    if not since:
        return "Nobody has written in it since the cut-over"
    return (
        f"The target's server has counted {counted(since, 'transaction')} since the cut-over, of whatever database, and"
        " Kainite's own too: if any wrote a replicated table, the target differs. kainite verify tells"
    )


def _state(ends: LoadEnds) -> LoadState | None:
    with load_session(ends.target, _NAME) as connection:
        load = load_in(connection, ends.log_partition)
    return None if load is None else load.state


def _store(configured: Settings) -> DynamoDBStore:
    return DynamoDBStore(aws.client("dynamodb", configured.aws), configured.log.table)


def _telling(*, as_json: bool) -> Callable[[str, LogStanding], None]:
    """Returns what tells the progress, each few looks, and when something has changed."""
    looks, latest = 0, ""

    def tell(position: str, found: LogStanding) -> None:
        nonlocal looks, latest
        looks += 1
        if str(found) != latest or looks % _TELL_EVERY == 0:
            latest = str(found)
            _say({"waits_for": position, **asdict(found)}, f"waiting for {position}: {found}", as_json=as_json)

    return tell


def _text(done: CutOverDone, source: CutOverSource, lacking: Sequence[str]) -> str:
    lines = [
        f"everything up to {done.position} is in the target",
        f"{len(done.sequences)} sequences were set, {len(done.triggers)} triggers and rules switched on",
        *(f"on: {trigger}" for trigger in done.triggers),
        *(f"still off, for another log's apply job: {trigger}" for trigger in done.still_off),
        *(f"foreign key refused by the target: {refused}" for refused in done.foreign_keys),
        *(f"the target lacks the source's trigger {trigger}" for trigger in lacking),
        "the target may be written. End kainite extract, run and apply of this file"
        + (f", then on the source: {source.farewell}" if source.farewell else ""),
    ]
    return "\n".join(lines)


def _say(fields: dict[str, Any], text: str, *, as_json: bool) -> None:
    if as_json:
        say_json(fields)
    else:
        say(text)
