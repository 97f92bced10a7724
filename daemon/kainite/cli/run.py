"""``kainite run``: the daemon, or with ``--check`` a look at its settings."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from kainite.base.logs import event
from kainite.cli.options import file_and_options, settings_anywhere

logger = logging.getLogger(__name__)


@click.command(context_settings={"ignore_unknown_options": True})
@settings_anywhere
@click.option("--check", is_flag=True, help="Only show what is set, unknown or wrong; exit 1 when something is wrong.")
@click.option("--all", "everything", is_flag=True, help="With --check: show the keys that are not set, too.")
@click.option("--json", "as_json", is_flag=True, help="With --check: as JSON.")
@click.option("-l", "--log-configuration", metavar="FILE", help="KCL's logback file: accepted, without effect.")
def run(
    option: Path | None,
    rest: tuple[str, ...],
    check: bool,
    everything: bool,
    as_json: bool,
    log_configuration: str | None,
) -> int:
    """Reads the stream's shards and feeds one record processor a shard.

    Runs until SIGTERM or Ctrl-C; then children are told to shut down and given time to checkpoint.

    Each key of a settings file is an option too (streamName: --stream-name) and may stand in the environment
    (STREAM_NAME for KCL's keys, KAINITE_STREAM_NAME for all). An option wins over the environment, the environment
    over the file. The keys: docs/properties.md, or --check --all.

    \b
    Examples:
      kainite run -p app.properties
      kainite run app.properties                  as KCL's command line allows it
      kainite run -p app.properties --check
      kainite run -p app.properties --worker-id host-1 --failover-time-millis 20000
      kainite --log-format json run -p app.properties
    """
    path, options = file_and_options(option, rest)
    if (as_json or everything) and not check:
        raise click.UsageError("--json and --all go with --check")
    if check:
        from kainite.cli import settings_report as checking

        return checking.show(path, options, as_json=as_json, everything=everything)
    from kainite.cli.settings_warnings import tell_warnings
    from kainite.settings import load

    settings = load(path, options)
    tell_warnings(settings)
    if log_configuration:
        event(logger, logging.WARNING, "log configuration is not read: see --log-format and --log-level",
              file=log_configuration)  # fmt: skip
    from kainite.worker.supervisor import run as run_worker

    return run_worker(settings)
