"""The examples in ``record_processors/examples``: made ready in a folder, and talked with as the daemon does."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kainite.base.record import RawRecord
from kainite.child.events import CheckpointRequested, Rejected
from kainite.child.json_lines.records import render_process_records
from kainite.child.markers.records import render_records
from kainite.child.process import ChildProcess
from kainite.new_processor.catalogue import Example, folder
from kainite.settings import ChildProtocol, ChildSettings, MarkersSettings

LIMIT = 60.0
NODE_MODULES = Path(sys.prefix) / "peers/node/node_modules"
COMPILERS = ("cc", "javac")


def make_ready(example: Example, into: Path) -> tuple[str, ...]:
    """Puts the example's files into the folder, compiled; returns its command, for any working folder.

    What its ``prepare`` installs, the tests have: amazon_kclpy beside this Python, aws-kcl among the peers, Jackson
    among PySpark's jars.
    """
    into.mkdir(parents=True, exist_ok=True)
    for name in (example.source, *example.beside):
        (into / name).write_bytes((folder() / example.language / name).read_bytes())
    if example.language == "java":
        _link_jackson(into / "lib")
    for command in example.prepare:
        if shlex.split(command)[0] in COMPILERS:
            subprocess.run(shlex.split(command), cwd=into, check=True, timeout=LIMIT)
    return command_in(into, example.run)


def command_in(into: Path, run: str) -> tuple[str, ...]:
    """Returns a command line of the folder's, with the tests' own tools in its reach."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return ("env", "-C", str(into), f"PATH={path}", f"NODE_PATH={NODE_MODULES}", *shlex.split(run))


def _link_jackson(lib: Path) -> None:
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    lib.mkdir()
    jars = [
        jar
        for part in ("annotations", "core", "databind")
        for jar in (Path(spark.origin).parent / "jars").glob(f"jackson-{part}-*.jar")
    ]
    assert len(jars) == 3
    for jar in jars:
        (lib / jar.name).symlink_to(jar)


@dataclass
class Talk:
    """A conversation with one child, and its results.

    Attributes:
        refuse: what checkpoints are answered with; None grants them.
        deltas: what it emitted, in order.
        lines: the same as it came.
        rejected: the messages that it, or Kainite in its place, called bad.
        checkpoints: what it asked for, or what was asked in its place.
    """

    child: ChildProcess
    protocol: ChildProtocol
    refuse: str | None = None
    deltas: list[Any] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    checkpoints: list[CheckpointRequested] = field(default_factory=list)

    async def perform(self, *request: bytes) -> None:
        async with asyncio.timeout(LIMIT):
            self.child.send(*request)
            await self.child.serve(answer=self._answer, emitted=self._emitted, rejected=self.rejected.append)

    async def initialize(self) -> None:
        await self.perform(self.child.dialect.initialize("shardId-0", "TRIM_HORIZON", 0))

    async def process(self, payloads: Sequence[bytes]) -> None:
        render = render_records if self.protocol is ChildProtocol.MARKERS else render_process_records
        await self.perform(*self.child.dialect.process_records(render(records(payloads), 0)))

    async def _answer(self, request: CheckpointRequested) -> str | None:
        self.checkpoints.append(request)
        return self.refuse

    def _emitted(self, line: bytes) -> None:
        self.lines.append(line)
        self.deltas += json.loads(line)["deltas"]


def records(payloads: Sequence[bytes]) -> list[RawRecord]:
    return [
        RawRecord(str(100 + place), "schlüssel\u2028", base64.b64encode(payload).decode(), 1_700_000_000.0)
        for place, payload in enumerate(payloads)
    ]


@asynccontextmanager
async def talking(
    command: Sequence[str], protocol: ChildProtocol, markers: MarkersSettings | None = None
) -> AsyncIterator[Talk]:
    """Starts a child and initializes it."""
    settings = ChildSettings(tuple(command), protocol=protocol, markers=markers or MarkersSettings())
    child = ChildProcess.start("shardId-0", settings)
    talk = Talk(child, protocol)
    try:
        await talk.initialize()
        yield talk
    finally:
        await child.close(5.0)
