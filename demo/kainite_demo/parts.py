"""What a run consists of: its size, where its parts are, and the command lines of its processes."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.replication import SourceSlot
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.settings import ExtractOffsets
from kainite_demo import pgbench, services
from kainite_demo.processes import Process

PRECEDENCE, DAEMON, APPLY_JOB, EXTRACTOR, PGBENCH = "precedence", "daemon", "apply job", "extractor", "pgbench"

# The processes that run all the while, and the event by which each says that it is ready.
READY: Mapping[str, str] = {DAEMON: "daemon ready", APPLY_JOB: "apply job started", EXTRACTOR: "extraction started"}


@dataclass(frozen=True, slots=True)
class Options:
    """The size of a run: seconds and clients of pgbench, transactions a second, shards, scale.

    ``endpoint`` is of a Kinesis and DynamoDB that run already; ``settings`` is a file to begin with.
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


@dataclass(frozen=True, slots=True)
class Parts:
    """What stands while the processes run: the servers, by their addresses, and the work folder."""

    folder: Path
    source: SourceSlot
    target: str
    endpoint: str

    @property
    def name(self) -> str:
        """Of the application, its stream and its tables: nobody else's, where the endpoint is not of this run alone."""
        return self.folder.name

    @property
    def settings(self) -> Path:
        return self.folder / "demo.properties"

    @property
    def catalogue(self) -> Path:
        return self.folder / "catalogue.json"

    @property
    def offset_file(self) -> OffsetFile:
        """How far the source has been extracted."""
        return OffsetFile(self.folder / "extractor.offset", self.name, ExtractOffsets.KAINITE)

    @property
    def journal(self) -> Path:
        """When each unit committed in the source."""
        return self.folder / "extractor.journal"


def processes(parts: Parts, options: Options) -> dict[str, Process]:
    """All processes of a run by name, not started."""
    source = parts.source
    kainite = [sys.executable, "-m", "kainite", "--log-format", "json"]
    settings = ["-p", str(parts.settings)]
    commands: dict[str, Sequence[str]] = {
        PRECEDENCE: [*kainite, "precedence", *settings, "--write", str(parts.catalogue)],
        DAEMON: [*kainite, "run", *settings],
        APPLY_JOB: [*kainite, "apply", *settings],
        EXTRACTOR: [*kainite, "extract", *settings],
        PGBENCH: pgbench.run_command(source.url, options.clients, options.seconds, options.rate, options.seed),
    }
    env = services.environment(parts.folder)
    return {name: Process(name, command, parts.folder, env) for name, command in commands.items()}


def extractor_command(parts: Parts) -> list[str]:
    """Returns the command of the extractor that ``kainite extract`` runs."""
    source = parts.source
    options = {
        "source": source.url,
        "slot": source.slot,
        "publication": source.publication,
        "journal": str(parts.journal),
    }
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    return [str(Path(sysconfig.get_path("scripts"), PROGRAM)), *arguments]
