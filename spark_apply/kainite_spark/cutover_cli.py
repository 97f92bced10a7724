"""``kainite replicate cutover``: makes a replica a database that others write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from kainite import settings
from kainite.aws import clients as aws
from kainite.base.log_thread import log_in_thread
from kainite.cli.options import properties_option
from kainite.cli.terminal import say, say_json
from kainite.replicate.any_ends import any_ends_of
from kainite.replicate.applied_point import LogStanding, read_standing, stuck_units
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.ends import LoadEnds, target_session
from kainite.replicate.findings import CheckFinding, fine, is_ready, some_names, wrong
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_ledger import LoadLedger, found_load
from kainite.replicate.preparation import target_catalogue
from kainite.replicate.status import status_of
from kainite.settings import Settings, UowOrder
from kainite.store.dynamodb import DynamoDBStore
from kainite_spark.cli import stopping
from kainite_spark.load.cutover import CutOver, CutOverDone
from kainite_spark.load.cutover_source import BinlogCutOverSource, CutOverSource, PostgresCutOverSource
from kainite_spark.load.findings_table import print_findings

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
    target is a replica as before until the last step. May be killed, and started again.

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
    findings = list(_look(configured, source))
    ready = is_ready(findings)
    if as_json:
        say_json({"ready": ready, "findings": [asdict(finding) for finding in findings]})
    else:
        print_findings(findings)
    if check or not ready:
        return 0 if ready else 1
    return _cut_over(configured, source, wait, as_json=as_json)


def _source_of(configured: Settings) -> CutOverSource:
    ends = any_ends_of(configured)
    if isinstance(ends, BinlogEnds):
        return BinlogCutOverSource(ends, target_catalogue(configured, ends))
    return PostgresCutOverSource(ends)


def _look(configured: Settings, source: CutOverSource) -> Iterator[CheckFinding]:
    """Yields what is in the way of a cut-over."""
    if configured.uow.order is not UowOrder.DENSE:
        yield wrong("settings", "units are not applied in the order of their commits", "uowOrder = dense")
    yield from source.look()
    with target_session(source.ends.target) as target:
        load = found_load(target, source.ends.log_partition)
        if load is None or load.state is not LoadState.LIVE:
            yield wrong("target", "it is not live", f"kainite replicate load -p {configured.path}")
        elif not status_of(target, source.ends.log_partition).consistent:
            yield wrong("target", "tables are not live yet", f"kainite replicate status -p {configured.path}")
        else:
            yield fine("target", "it is live")
    if stuck := stuck_units(_store(configured), configured.log.partition):
        yield wrong("units", f"not applied before a person decides: {some_names(stuck)}",
                    f"kainite uow retry, or discard, -p {configured.path}")  # fmt: skip


def _cut_over(configured: Settings, source: CutOverSource, wait: float, *, as_json: bool) -> int:
    stop = threading.Event()
    log = partial(read_standing, _store(configured), configured.log.partition)
    with log_in_thread(), stopping(stop):
        done = CutOver(source, log, stop, _telling(as_json=as_json), wait).run()
    if done is None:
        _say({"cut_over": False}, "stopped: the target is a replica as before", as_json=as_json)
        return 1
    _say({"cut_over": True, **asdict(done)}, _text(done, source), as_json=as_json)
    return 0


def _undo(ends: LoadEnds, *, as_json: bool) -> int:
    with target_session(ends.target) as connection:
        ledger = LoadLedger(connection, ends.log_partition)
        since = None if ledger.found() is None else ledger.make_live_again()
    if since is None:
        _say({"undone": False}, "the target was not cut over", as_json=as_json)
        return 0
    told = "the target is a replica again: units are applied, and triggers are off from the apply job's next start on"
    _say({"undone": True, "transactions_since": since}, f"{told}. {_written(since)}", as_json=as_json)
    return 0


def _written(since: int) -> str:
    """Tells what is known of writes between a cut-over and its undoing."""
    if not since:
        return "Nobody has written in it since the cut-over"
    return (
        f"{since} transactions of the target's server have got an id since the cut-over, of whatever database, and"
        " Kainite's own too: if any wrote a replicated table, the target differs. kainite verify tells"
    )


def _state(ends: LoadEnds) -> LoadState | None:
    with target_session(ends.target) as connection:
        load = found_load(connection, ends.log_partition)
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


def _text(done: CutOverDone, source: CutOverSource) -> str:
    lines = [
        f"everything up to {done.position} is in the target",
        f"{len(done.sequences)} sequences were set, {len(done.triggers)} triggers and rules switched on",
        *(f"on: {trigger}" for trigger in done.triggers),
        *(f"still off, for another log's apply job: {trigger}" for trigger in done.still_off),
        "the target may be written. End kainite extract, run and apply of this file"
        + (f", then on the source: {source.farewell}" if source.farewell else ""),
    ]
    return "\n".join(lines)


def _say(fields: dict[str, Any], text: str, *, as_json: bool) -> None:
    if as_json:
        say_json(fields)
    else:
        say(text)
