"""``kainite status``: one verdict on an application, and the next thing to do."""

from __future__ import annotations

import time
from pathlib import Path

import click

from kainite.base.errors import KainiteError
from kainite.cli.options import properties_option
from kainite.cli.terminal import say, say_json
from kainite.replicate.asked_target import asking
from kainite.settings import load
from kainite.verdict.judging import ExitStatus, judge
from kainite.verdict.reading import FactsReader
from kainite.verdict.rendering import as_json as verdict_json
from kainite.verdict.rendering import lines

WATCH_S = 5.0


class HostPort(click.ParamType):  # type: ignore[type-arg]  # generic in some versions of click only
    name = "HOST:PORT"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int] | None:
        host, colon, port = value.rpartition(":")
        if not (host and colon and port.isdecimal() and 0 < int(port) < 65_536):
            self.fail(f"{value!r} is not HOST:PORT", param, ctx)
        return host.strip("[]"), int(port)


@click.command("status")
@properties_option
@click.option("--at", "asked", type=HostPort(), multiple=True, metavar="HOST:PORT",
              help="Ask the /health of this process too; its metricsPort.")  # fmt: skip
@click.option("--wait", type=click.FloatRange(min=0), metavar="SECONDS",
              help="How long to wait for signs of life where none is at hand.  [until it can tell]")  # fmt: skip
@click.option("--watch", type=click.FloatRange(min=0.1), is_flag=False, flag_value=WATCH_S, metavar="[SECONDS]",
              help="Repeat every so many seconds, 5 by default, until Ctrl-C.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON document; with --watch one line a round.")
def status(
    properties: Path, asked: tuple[tuple[str, int], ...], wait: float | None, watch: float | None, as_json: bool
) -> int:
    """Tells whether all is well, why not, and what to do next.

    Reads the log's HEAD, the lease table and the fleet's table, asks the /health of this file's processes on this host
    (--at asks others), and the target of a replica for its tables and its latest comparison. The log itself is not
    read, so this takes no longer with more units.

    \b
    Examples:
      kainite status -p app.properties
      kainite status -p app.properties --watch
      kainite status -p app.properties --json --wait 0
      kainite status -p app.properties --at host-1:9095 --at host-2:9095

    Exit code: 0 healthy, 1 degraded (work goes on, some of it waits for a person), 2 broken (work stands still), 3 not
    known. An error of the command itself, such as a settings file that is not there, is 3 too; wrong usage is 2.
    """
    try:
        settings = load(properties, needs=("applicationName",))
        wait = 0.0 if watch is not None and wait is None else wait
        reader = FactsReader(settings, str(properties), wait, asked, replica=asking(settings))
    except KainiteError as error:
        say(f"kainite: {error}", err=True)
        return ExitStatus.UNKNOWN
    while True:
        verdict = judge(reader.read())
        if as_json:
            say_json(verdict_json(verdict), indent=watch is None)
        else:
            say("\n".join(lines(verdict)))
        if watch is None:
            return verdict.status
        if not as_json:
            say("")
        time.sleep(watch)
