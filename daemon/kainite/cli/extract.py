"""``kainite extract``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kainite.base.errors import SettingsError
from kainite.cli.options import file_and_options, settings_anywhere


@click.command(context_settings={"ignore_unknown_options": True})
@settings_anywhere
@click.option("--once", is_flag=True, help="End after one cycle, or one run in plain mode, that succeeded.")
@click.option("--begin", metavar="JSON", help="Make the offset file with this offset to begin at, and end.")
@click.option("--check", is_flag=True, help="Only show settings, guarantee and problems; exit 1 when there are any.")
@click.option("--all", "everything", is_flag=True, help="With --check: show the keys that are not set, too.")
@click.option("--json", "as_json", is_flag=True, help="Say what happens as JSON lines on stdout; --check as JSON.")
def extract(
    option: Path | None,
    rest: tuple[str, ...],
    once: bool,
    begin: str | None,
    check: bool,
    everything: bool,
    as_json: bool,
) -> int:
    """Runs an extractor in any language, and puts its messages on the stream.

    The extractor (extractorName) writes messages, each with a line's end. In plain mode it exits when it has written
    all. In cyclic mode it is asked again and again, and ends each answer with a NUL. Units of work go to the shards
    in turn. The guarantee after a crash depends on where the offset is kept: --check shows it.

    SIGTERM or Ctrl-C: the cycle under way is finished, then 0; a second one ends everything at once. Exits with 1
    when the extractor failed extractorTries times in a row, or the stream or the offset file cannot be used.

    \b
    Examples:
      kainite extract -p app.properties
      kainite extract -p app.properties --check
      kainite extract -p app.properties --begin null          once, for extractorOffsets=kainite
      kainite extract -p app.properties --begin 2026-11-01T00:00:00Z      the same for time
      kainite extract -p app.properties --once --json
    """
    path, options = file_and_options(option, rest)
    if check:
        from kainite.cli import extract_report as checking

        return checking.show(path, options, as_json=as_json, everything=everything)
    from kainite.settings import load

    settings = load(path, options, needs=("streamName", "extractorName"))
    if settings.stream.names:
        raise SettingsError("kainite extract puts on one stream: give it a file with streamName, not streamNames")
    if begin is not None:
        from kainite.extract.offsets.begin import begin_at

        begin_at(settings, begin)
        return 0
    from kainite.cli.settings_warnings import tell_warnings
    from kainite.extract.progress import Showing
    from kainite.extract.run import run

    tell_warnings(settings)
    return run(settings, Showing(line=sys.stderr.isatty() and not as_json, events=as_json), once=once)
