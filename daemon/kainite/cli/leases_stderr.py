"""``kainite leases stderr``: what children last wrote to standard error, and their state."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kainite.base.errors import LeaseTableError
from kainite.cli.options import properties_option
from kainite.cli.status import HostPort
from kainite.cli.terminal import say, say_json
from kainite.settings import load
from kainite.verdict.health_page import ask_child_words
from kainite.verdict.reading import own_pages


@click.command("stderr")
@properties_option
@click.argument("shard", required=False)
@click.option("--at", "asked", type=HostPort(), multiple=True, metavar="HOST:PORT",
              help="Ask the daemon there too; its metricsPort.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def stderr(properties: Path, shard: str | None, asked: tuple[tuple[str, int], ...], as_json: bool) -> None:
    """Shows the last lines that a shard's child, or every child, wrote to standard error, and the child's state.

    The daemon that reads the shard is asked: the one of this file on this host (metricsPort), and those of --at. Of a
    child that has just ended, its lines are shown until the next one writes some.

    \b
    Examples:
      kainite leases stderr -p app.properties
      kainite leases stderr -p app.properties shardId-000000000003 --at host-2:9095
    """
    settings = load(properties, needs=("applicationName",))
    pages = (*own_pages(settings), *asked)
    found = ask_child_words(pages)
    if shard is not None and shard not in found:
        raise LeaseTableError(f"no daemon that was asked reads {shard}: name the one that does with --at HOST:PORT")
    shown = {name: words for name, words in sorted(found.items()) if shard in (None, name)}
    if as_json:
        say_json({name: asdict(words) for name, words in shown.items()}, indent=True)
        return
    if not shown:
        at = f" ({', '.join(f'{host}:{port}' for host, port in pages)})" if pages else ""
        say(f"no daemon that was asked{at} answers and reads a shard: set metricsPort, or use --at HOST:PORT")
    for name, words in shown.items():
        say(f"{name}  {words.state}" + (f"  pid {words.pid}" if words.pid is not None else "  no child"))
        for line in words.lines:
            say(f"  {line}")
