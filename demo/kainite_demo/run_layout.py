"""Lays out a run: its size, its addresses and files, and the command lines of its processes."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kainite.capture.mysql.command import PROGRAM as MYSQL_PROGRAM
from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.replication import SourceSlot
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.fleet.model.records import DutyKind
from kainite.settings import ExtractOffsets
from kainite_demo import pgbench, services
from kainite_demo.processes import Process

DAEMON, APPLY_JOB, EXTRACTOR, PGBENCH = "daemon", "apply job", "extractor", "pgbench"
CONSOLE = "console"


class SourceKind(StrEnum):
    """How the source's transactions reach the stream: extracted, with their ends; or as Aurora DSQL's do, without."""

    POSTGRESQL = "postgresql"
    MARIADB = "mariadb"
    DSQL = "dsql"


class DemoTarget(StrEnum):
    """The kind of the target."""

    POSTGRESQL = "postgresql"
    MARIADB = "mariadb"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The size of a run: seconds and clients of pgbench, transactions a second, shards, scale.

    ``endpoint`` is the address of a running Kinesis and DynamoDB; ``settings`` is a file to begin with; so many
    ``daemons`` share the shards. ``source`` says how transactions reach the stream. With ``fleet`` the daemons start
    everything else as their duties.
    """

    seconds: int
    shards: int
    clients: int
    scale: int
    rate: int
    seed: int
    kill: bool
    keep: bool
    endpoint: str | None = None
    settings: Path | None = None
    daemons: int = 1
    source: SourceKind = SourceKind.POSTGRESQL
    fleet: bool = False
    target: DemoTarget = DemoTarget.POSTGRESQL


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The addresses of a run's servers, and the files in its work folder; MariaDB's source has no slot."""

    folder: Path
    source: SourceSlot
    target: str
    endpoint: str

    @property
    def name(self) -> str:
        """Returns the name of the application, its stream and its tables; unique at an endpoint that others use too."""
        return self.folder.name

    @property
    def settings(self) -> Path:
        return self.folder / "demo.properties"

    @property
    def catalogue(self) -> Path:
        return self.folder / "catalogue.json"

    @property
    def offset_file(self) -> OffsetFile:
        """Returns the file that holds how far the source has been extracted."""
        return OffsetFile(self.folder / "extractor.offset", self.name, ExtractOffsets.KAINITE)

    @property
    def journal(self) -> Path:
        """Returns the file to which the extractor writes each unit's commit time."""
        return self.folder / "extractor.journal"


def daemon_names(options: RunOptions) -> tuple[str, ...]:
    """Returns the names of the daemons' processes."""
    return (DAEMON, *(f"{DAEMON} {number}" for number in range(2, options.daemons + 1)))


def ready_events(options: RunOptions) -> dict[str, str]:
    """Returns the processes that run throughout, and the log event by which each reports that it is ready."""
    events = dict.fromkeys(daemon_names(options), "daemon ready")
    if not options.fleet:
        events[APPLY_JOB] = "apply job started"
    if DutyKind.EXTRACT not in duties(options):
        events[EXTRACTOR] = "extraction started"
    return events


def duties(options: RunOptions) -> tuple[DutyKind, ...]:
    """Returns the duties that the fleet starts; DSQL is a service, and no duty."""
    extract = () if options.source is SourceKind.DSQL else (DutyKind.EXTRACT,)
    return (DutyKind.LOG, *extract, DutyKind.APPLY) if options.fleet else ()


def victims(options: RunOptions) -> tuple[str, ...]:
    """Returns the processes that a run kills; DSQL is a service, so the process that stands in for it is not killed."""
    parts = tuple(ready_events(options)) if options.kill else ()
    return tuple(name for name in parts if name != EXTRACTOR or options.source is not SourceKind.DSQL)


def processes(layout: RunLayout, options: RunOptions) -> dict[str, Process]:
    """Returns all processes of a run by name, not started."""
    source = layout.source
    kainite = [sys.executable, "-m", "kainite", "--log-format", "json"]
    settings = ["-p", str(layout.settings)]
    commands: dict[str, Sequence[str]] = {
        **{name: [*kainite, "run", *settings, "--worker-id", _worker_id(name)] for name in daemon_names(options)},
        APPLY_JOB: [*kainite, "apply", *settings],
        EXTRACTOR: [*kainite, "extract", *settings],
        CONSOLE: [*kainite, "console", *settings],
        PGBENCH: load_command(source.url, options),
    }
    if options.source is SourceKind.DSQL:
        commands[EXTRACTOR] = dsql_command(layout, options)
    env = services.environment(layout.folder)
    needed = {PGBENCH, CONSOLE, *ready_events(options)}
    return {name: Process(name, command, layout.folder, env) for name, command in commands.items() if name in needed}


def _worker_id(daemon: str) -> str:
    return f"demo-{daemon.replace(' ', '-')}"


def load_command(url: str, options: RunOptions) -> list[str]:
    """Returns the command of the source application: pgbench, or what does the same in MariaDB."""
    if options.source is not SourceKind.MARIADB:
        return pgbench.run_command(url, options.clients, options.seconds, options.rate, options.seed)
    names = ("clients", "seconds", "rate", "scale", "seed")
    arguments = {"source": url, **{name: str(getattr(options, name)) for name in names}}
    return [sys.executable, "-m", "kainite_demo.mariadb_load", *_arguments(arguments)]


def extractor_command(layout: RunLayout, source: SourceKind = SourceKind.POSTGRESQL) -> list[str]:
    """Returns the command of the extractor that ``kainite extract`` runs."""
    if source is SourceKind.MARIADB:
        options = {"source": layout.source.url, "journal": str(layout.journal)}
        return [str(Path(sysconfig.get_path("scripts"), MYSQL_PROGRAM)), *_arguments(options)]
    return [str(Path(sysconfig.get_path("scripts"), PROGRAM)), *_arguments(_source_options(layout))]


def dsql_command(layout: RunLayout, options: RunOptions) -> list[str]:
    """Returns the command that streams the source as Aurora DSQL does, and reshards the stream in the middle."""
    more = {
        "endpoint": layout.endpoint,
        "stream": layout.name,
        "seed": str(options.seed),
        "reshard-after": str(options.seconds / 3),
    }
    return [sys.executable, "-m", "kainite_demo.dsql_source", *_arguments({**_source_options(layout), **more})]


def _source_options(layout: RunLayout) -> dict[str, str]:
    source = layout.source
    return {
        "source": source.url,
        "slot": source.slot,
        "publication": source.publication,
        "journal": str(layout.journal),
    }


def _arguments(options: Mapping[str, str]) -> list[str]:
    return [part for name, value in options.items() for part in (f"--{name}", value)]
