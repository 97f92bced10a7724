"""The command line: ``kainite COMMAND``."""

from __future__ import annotations

import click

from kainite import __version__
from kainite.base import logs
from kainite.cli.lazy_group import LazyCommand, LazyGroup

_LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"]

_OWN = {
    "run": LazyCommand("kainite.cli.run:run", "Read the stream's shards and feed the record processors."),
    "conform": LazyCommand("kainite.cli.conform:conform", "Tell whether a record processor implements the protocol."),
    "console": LazyCommand("kainite.cli.console:console", "Serve the operator's pages in a browser."),
    "extract": LazyCommand("kainite.cli.extract:extract", "Run an extractor, and put what it gives on the stream."),
    "new-processor": LazyCommand(
        "kainite.cli.new_processor:new_processor", "Write a starting point for a record processor."
    ),
    "doctor": LazyCommand(
        "kainite.cli.doctor:doctor", "Ask whatever a settings file will need, before anything starts."
    ),
    "precedence": LazyCommand("kainite.cli.precedence:precedence", "Show the target's tables in foreign-key order."),
    "leases": LazyCommand("kainite.cli.leases:leases", "Show who reads which shard and how far, or set checkpoints."),
    "fleet": LazyCommand("kainite.cli.fleet:fleet", "Show and steer what runs exactly once somewhere in the fleet."),
    "log": LazyCommand("kainite.cli.log:log", "Look into the serialization log, or serve it."),
    "status": LazyCommand("kainite.cli.status:status", "Tell whether all is well, and what to do if not."),
    "uow": LazyCommand("kainite.cli.uow:uow", "Look at units of work, and retry or discard failed ones."),
}

# The packages beside this one announce their commands as entry points; their help lines stand here,
# so that listing them imports nothing.
_HELP = {
    "apply": "Apply units of work to the target: the PySpark job.",
    "replicate": "Make a replica of an existing PostgreSQL or MariaDB database.",
    "verify": "Compare a replica with its source, to the row, while both live.",
    "demo": "The whole way on embedded parts: pgbench, Kinesis, the log, Spark.",
}


def _beside() -> dict[str, LazyCommand]:
    """Returns the commands of the packages beside this one; to look for them takes time."""
    from importlib.metadata import entry_points

    found = entry_points(group="kainite.commands")
    return {entry.name: LazyCommand(entry.value, _HELP.get(entry.name, entry.value)) for entry in found}


@click.group(cls=LazyGroup, lazy=_OWN, more=_beside, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kainite")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("--log-level", type=click.Choice(_LEVELS, case_sensitive=False), default="INFO", show_default=True)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def main(debug: bool, log_level: str, log_format: str) -> None:
    """Reads Kinesis shards without a JVM, and carries whole transactions.

    \b
    Examples:
      kainite run -p app.properties            read, as the Java MultiLangDaemon does
      kainite run -p app.properties --check    what is set, unknown or wrong
      kainite doctor -p app.properties         is all there that this file needs
      kainite status -p app.properties         is all well, and what to do if not
      kainite apply -p app.properties          apply units of work to the target
      kainite log show -p app.properties       the units of work in the log
      kainite new-processor python orders      begin a record processor
      kainite conform -- python processor.py   does it implement the protocol?

    Exit code: 0 when all went well, 1 when something is wrong (one line on standard error says what), 2 for wrong
    usage, 130 after Ctrl-C, unless a command says otherwise.
    """
    logs.configure(log_level.upper(), json_lines=log_format == "json")
