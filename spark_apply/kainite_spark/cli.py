"""``kainite apply``: the PySpark job that applies units of work to the target."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import click

from kainite import settings
from kainite.aws import clients as aws
from kainite.base import service_manager
from kainite.base.errors import SettingsError, SparkUnavailableError, StoppedError
from kainite.base.garbage import collect_rarely, keep_what_is_loaded
from kainite.base.log_thread import log_in_thread
from kainite.cli.options import properties_option, target_option
from kainite.cli.settings_warnings import tell_warnings
from kainite.cli.terminal import say, say_json
from kainite.log.contract import LogStore
from kainite.log.state.outcomes import outcomes_partition
from kainite.observe.meter import Meter
from kainite.peers.access import access_of
from kainite.peers.feed.following import LogFeed
from kainite.replicate.asked_target import asking, giving_up
from kainite.settings import AwsFrom, Settings
from kainite.settings.targets import has_one_job, is_atomic, of_target
from kainite.store.dynamodb import DynamoDBStore
from kainite_spark.configured_target import ledger_of, prepared_target, target_of
from kainite_spark.driver.environment import ApplyEnvironment, ApplySummary
from kainite_spark.driver.feeding import beside, feed_of
from kainite_spark.driver.job import ApplyJob
from kainite_spark.driver.job_health import JobHealth
from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.outcomes import begin_to_watch
from kainite_spark.driver.patience import at_the_start
from kainite_spark.driver.publishing import publishing
from kainite_spark.driver.replica_watch import watching
from kainite_spark.driver.runner import SparkRunner
from kainite_spark.driver.session import spark_starting
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.executor.tasks import TaskSettings
from kainite_spark.targets.atomic.resolve_report import resolve
from kainite_spark.targets.atomic.target import AtomicTarget
from kainite_spark.targets.contract import Target
from kainite_spark.targets.hooks_report import show, switch_on, target_url
from kainite_spark.targets.opening import most_units, open_stops


@click.command()
@click.argument("what", required=False, type=click.Choice(["resolve"]), metavar="[resolve]")
@properties_option
@click.option("--once", is_flag=True, help="Apply all units that are in the log, then end.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as a JSON object at the end.")
@click.option("--adopt-target", is_flag=True, help="Take a target that went back as it is: what it lacks is lost.")
@click.option("--check", is_flag=True, help="Only show the target's tables and triggers; exit 1 where it is refused.")
@click.option("--triggers-on", is_flag=True, help="Only switch on what targetTriggers=off has switched off.")
@click.option("--by-log", is_flag=True, help="With resolve: finish what is left prepared as the log has decided.")
@target_option
def apply(
    what: str | None,
    properties: Path,
    once: bool,
    as_json: bool,
    adopt_target: bool,
    check: bool,
    triggers_on: bool,
    by_log: bool,
    target: str | None,
) -> int:
    """Applies units of work to the target, each exactly once.

    Runs until TERM or Ctrl-C, then ends after the current micro-batch. Several may be started: one applies
    units, the others wait until it has ended. Each of several targets has an apply job of its own (--target); with
    targetCommit=together and atomic one serves them all. With atomic, "apply resolve" shows the transactions that are
    left prepared in them.

    \b
    Examples:
      kainite apply -p app.properties               follow the log
      kainite apply -p app.properties --target crm  the same for target.crm
      kainite apply -p app.properties --once --json catch up, and print a summary
      kainite apply -p app.properties --check       which tables fold, and which triggers fire
      kainite apply -p app.properties --triggers-on at a cut-over, when the apply job has ended
      kainite apply resolve -p app.properties       what is left prepared, and what each choice does to the data
    """
    if by_log and what is None:
        raise SettingsError("--by-log is about what is left prepared: kainite apply resolve --by-log")
    configured = _configured(properties, target, of_one=check or triggers_on)
    if triggers_on:
        return switch_on(configured)
    if check:
        return show(configured, as_json=as_json)
    if what is not None:
        return _resolve(configured, by_log=by_log, as_json=as_json)
    tell_warnings(configured)
    summary = run(configured, once=once, adopts=adopt_target)
    if as_json:
        say_json(_as_json(summary))
    else:
        say(_as_text(summary))
    return 0


def _configured(properties: Path, target: str | None, *, of_one: bool) -> Settings:
    """Returns the settings of one target; of an apply job that serves several, those of all.

    Args:
        properties: the settings file.
        target: the target that was named.
        of_one: whether the command is about one target in any case.

    Raises:
        SettingsError: the file cannot be used, or the wrong target is named, or none.
    """
    found = settings.load(properties, needs=("applicationName",))
    if of_one or not has_one_job(found):
        return of_target(found, target)
    if target is not None:
        raise SettingsError(
            f"with targetCommit={found.apply.commit} one apply job serves all targets: start it without --target"
        )
    return found


def _resolve(configured: Settings, *, by_log: bool, as_json: bool) -> int:
    """Shows, or finishes, what is left prepared in several targets.

    Raises:
        SettingsError: the application does not commit in all targets or none.
    """
    if not is_atomic(configured):
        raise SettingsError("no transaction is prepared with these settings: targetCommit is not atomic")
    store = DynamoDBStore(aws.client("dynamodb", configured.aws), configured.log.table)
    # Without their tables: a target that is away must not keep the others from being finished.
    with contextlib.closing(target_of(configured, store, None)) as target:
        assert isinstance(target, AtomicTarget)
        return resolve(target, ledger_of(configured), by_log=by_log, as_json=as_json)


def run(configured: Settings, *, once: bool = False, adopts: bool = False) -> ApplySummary:
    """Runs the apply job that a settings file describes, until a signal stops it.

    Raises:
        SettingsError: no target is set, or its kind is unknown.
        KainiteError: as :meth:`~kainite_spark.driver.job.ApplyJob.run`.
    """
    stop = threading.Event()
    try:
        with log_in_thread():
            return _run(configured, stop, once=once, adopts=adopts)
    except StoppedError:
        return ApplySummary()
    except SparkUnavailableError:
        if stop.is_set():  # Spark had not started, or was given up after the grace
            return ApplySummary()
        raise


def _run(configured: Settings, stop: threading.Event, *, once: bool, adopts: bool) -> ApplySummary:
    health = JobHealth(target=configured.target_name)
    # A service manager may send HUP before there is anything to read again (_fed): while Spark starts, say. A job that
    # only catches up ends at HUP, with its terminal.
    passed_over = {} if once else {signal.SIGHUP: lambda: None}
    apply = configured.apply
    store = DynamoDBStore(aws.client("dynamodb", configured.aws), configured.log.table)
    name = " ".join(filter(None, ["kainite apply", configured.leases.application, configured.target_name]))
    with (
        stopping(stop),
        _handled(passed_over),
        publishing(configured, health.report) as meter,
        watching(asking(configured), health, meter, giving_up(configured)),
        spark_starting(apply.master, name, stop, apply.python) as spark,  # while the target and the log are looked at
        prepared_target(configured, store, stop) as (target, current, tables),
    ):
        at_the_start(store.create, stop, "the log's table")
        owner = f"apply:{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        # A killed job holds the partition until its lease runs out; that time passes while Spark starts.
        outcomes = outcomes_partition(configured.log.partition, configured.target_name)
        watch = at_the_start(lambda: begin_to_watch(store, outcomes), stop, "the log's table")
        context = spark()
        with stopping(stop):
            limits = SparkLimits(apply.stall, apply.job_limit, configured.child.shutdown_grace)
            settings = _task_settings(configured, owner, target)
            hand_out = partial(aws.frozen_credentials, configured.aws)
            from_driver = apply.aws_from is AwsFrom.DRIVER
            runner = SparkRunner(context, settings, limits, stop, health.waits_for, hand_out if from_driver else None)
            current.tell(runner.retarget)
            runner.warm_up()
            ledger = ledger_of(configured)
            stops = None if configured.of_targets else open_stops(target_url(configured), ledger)
            with _fed(configured, store, owner, health, meter, once=once) as feed:
                environment = ApplyEnvironment(
                    configured.apply, store, configured.log.partition, owner, target, runner, ledger, current, meter,
                    health, feed, adopts, stops, configured.target_name, tables,
                )  # fmt: skip
                job = ApplyJob(environment, stop, watch)
                keep_what_is_loaded()
                collect_rarely()
                service_manager.tell(service_manager.READY)
                job.run(once=once)
            return job.summary


@contextlib.contextmanager
def _fed(
    configured: Settings, store: LogStore, name: str, health: JobHealth, meter: Meter, *, once: bool
) -> Iterator[LogFeed | None]:
    """Gives the feed of the log's owner; None for a job that only catches up, which reads the log."""
    if once:
        yield None
        return
    access = access_of(configured.service)
    health.also = lambda: access.held.problem(time.time())
    feed = feed_of(store, configured.log, configured.apply, access, name)
    with _handled({signal.SIGHUP: access.held.ask}), beside(feed, access, meter):
        yield feed


def _task_settings(configured: Settings, run_name: str, target: Target) -> TaskSettings:
    apply = configured.apply
    # A task does not know onUowFailure=skip: whether a unit has failed is certain only after its second try, and until
    # then units that conflict with it must wait.
    stops = apply.on_failure is settings.OnFailure.STOP
    options = ApplyOptions(stops, most_units(apply), apply.group_bytes, fold=apply.fold, unit_bytes=apply.unit_bytes)
    return TaskSettings(run_name, configured.aws, configured.log.table, configured.log.partition, target, options)


@contextlib.contextmanager
def stopping(stop: threading.Event) -> Iterator[None]:
    """Sets ``stop`` at TERM and INT. Must be entered again after Spark has started, which sets its own INT handler."""
    with _handled({signal.SIGTERM: stop.set, signal.SIGINT: stop.set}):
        yield


@contextlib.contextmanager
def _handled(handlers: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """Calls a function at each of some signals while entered."""
    before = {number: signal.signal(number, _calling(handler)) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _calling(handler: Callable[[], None]) -> Callable[[int, object], None]:
    return lambda _number, _frame: handler()


def _as_json(summary: ApplySummary) -> dict[str, int]:
    counts = {status.value.replace(" ", "_"): count for status, count in summary.outcomes.items()}
    return {"micro_batches": summary.micro_batches, **counts}


def _as_text(summary: ApplySummary) -> str:
    counts = ", ".join(f"{count} {status}" for status, count in summary.outcomes.items()) or "nothing to do"
    return f"{summary.micro_batches} micro-batches: {counts}"
