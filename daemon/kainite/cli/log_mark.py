"""``kainite log mark``: how far each target is, and how far all of them are."""

from __future__ import annotations

from pathlib import Path

import click

from kainite.cli.opened_log import opened_log
from kainite.cli.options import properties_option
from kainite.cli.terminal import say, say_json
from kainite.log.views.target_marks import TargetMarks, read_marks
from kainite.settings import load


@click.command("mark")
@properties_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def mark(properties: Path, as_json: bool) -> None:
    """Says up to which unit each target is applied, and all targets are.

    A mark is a transaction id: every unit below it is applied there, or was discarded. A reader of several targets that
    waits until the common mark has passed a unit finds that unit, and all before it, in each of them.

    \b
    Examples:
      kainite log mark -p app.properties
      kainite log mark -p app.properties --json
    """
    settings = load(properties, needs=("applicationName",))
    found = read_marks(*opened_log(settings), settings.log.targets.names)
    if as_json:
        targets = {name: at for name, at in found.marks.items() if name}
        say_json({"common": found.common, "next_id": found.next_id, "targets": targets})
    else:
        say("\n".join(lines(found)))


def lines(found: TargetMarks) -> list[str]:
    """Returns the marks as lines of text."""
    each = [f"target.{name}: {at}" for name, at in found.marks.items() if name]
    return [*each, f"all units below {found.common} are applied or discarded; the log's next id is {found.next_id}"]
