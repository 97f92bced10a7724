"""``kainite run``: the daemon, or with ``--check`` a look at its settings."""

from __future__ import annotations

from pathlib import Path

import click

from kainite.options import one_file, properties_anywhere


@click.command()
@properties_anywhere
@click.option("--check", is_flag=True, help="Only show what is set, unknown or wrong; exit 1 when something is wrong.")
@click.option("--json", "as_json", is_flag=True, help="With --check: as JSON.")
def run(option: Path | None, positional: Path | None, check: bool, as_json: bool) -> int:
    """Read the stream's shards and feed one record processor a shard.

    Runs until SIGTERM or Ctrl-C; then children are told to shut down and given time to checkpoint.

    \b
    Examples:
      kainite run -p app.properties
      kainite run app.properties                  as KCL's command line allows it
      kainite run -p app.properties --check
      kainite --log-format json run -p app.properties
    """
    path = one_file(option, positional)
    if as_json and not check:
        raise click.UsageError("--json goes with --check")
    if check:
        from kainite import check as checking

        return checking.show(path, as_json=as_json)
    from kainite.settings import load

    settings = load(path)
    from kainite.supervisor import run as run_worker

    return run_worker(settings)
