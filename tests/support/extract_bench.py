"""A stream on moto's server, and settings to extract onto it."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boto3
import javaproperties
import orjson
import psutil
import pytest

from kainite.extract.progress import Showing
from kainite.extract.run import run
from kainite.settings import load
from support.names import unique

LIMIT = 60.0
SILENT = Showing(line=False, events=False)
CHILDREN = Path(__file__).parents[1] / "children"


@dataclass
class Bench:
    """One extraction's surroundings."""

    kinesis: Any
    endpoint: str
    folder: Path
    stream: str
    shards: int = 3

    @property
    def lister(self) -> Any:
        """Returns a client for a ``StreamClient``, which takes it over."""
        return boto3.client("kinesis", endpoint_url=self.endpoint, region_name="us-east-1")

    @property
    def offset(self) -> Path:
        return self.folder / "offset"

    def settings(self, *command: str, **keys: str) -> Path:
        """Writes the settings file of an extractor."""
        path = self.folder / "app.properties"
        lines = {
            "applicationName": "extraction",
            "streamName": self.stream,
            "regionName": "us-east-1",
            "kinesisEndpoint": self.endpoint,
            "extractorName": shlex.join(command),
            "extractorIntervalMillis": "10",
            "extractorTries": "3",
            "taskBackoffTimeMillis": "10",
            **keys,
        }
        path.write_text(javaproperties.dumps({key: value for key, value in lines.items() if value}, timestamp=False))
        return path

    def cyclic(self, *command: str, offsets: str = "kainite", **keys: str) -> Path:
        """Writes the settings file of a cyclic extractor; its place is kept in :attr:`offset`."""
        file = "" if offsets == "extractor" else "offset"
        return self.settings(
            *command, extractorMode="cyclic", extractorOffsets=offsets, extractorOffsetFile=file, **keys
        )

    def counting(self, units: int, fault: str = "", **keys: str) -> Path:
        """Writes the settings of ``tests/children/extractor.py``, and the place to begin at."""
        arguments = [str(units), str(self.folder), *([fault] if fault else [])]
        path = self.cyclic(sys.executable, str(CHILDREN / "extractor.py"), *arguments, **keys)
        self.begin("null")
        return path

    def begin(self, start: str, offsets: str = "kainite") -> None:
        """Makes the offset file."""
        kind = "child" if offsets == "kainite" else offsets
        self.offset.write_text(f'{{"stream":"{self.stream}","offsets":"{kind}","start":{start},"end":null}}')

    def start(self) -> Any:
        """Returns the stored place's start."""
        return orjson.loads(self.offset.read_bytes())["start"]

    def pids(self) -> list[int]:
        path = self.folder / "pids"
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    def once(self, path: Path, **constants: int) -> int:
        """Extracts in this process, one cycle or run, with other constants of the extraction; returns the exit code."""
        settings = load(path)
        return run(replace(settings, extract=replace(settings.extract, **constants)), SILENT, once=True)  # type: ignore[arg-type]

    @contextmanager
    def running(self, path: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        """Runs ``kainite extract`` as a process."""
        command = [sys.executable, "-m", "kainite", "extract", "-p", str(path), *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            yield process
        finally:
            process.kill()
            for pid in self.pids():
                _kill(pid, str(self.folder))
            process.communicate()

    def by_shard(self) -> list[list[bytes]]:
        """Returns everything on the stream, by shard."""
        return [list(self._records(s["ShardId"])) for s in self.kinesis.list_shards(StreamName=self.stream)["Shards"]]

    def records(self) -> list[bytes]:
        return [record for shard in self.by_shard() for record in shard]

    def units(self) -> list[tuple[str, int]]:
        """Returns the counting extractor's records: unit and ordinal, 2 for the end; sorted."""
        bodies = map(orjson.loads, self.records())
        return sorted((body["uow"], body.get("ordinal", 2)) for body in bodies)

    def _records(self, shard: str) -> Iterator[bytes]:
        iterator = self.kinesis.get_shard_iterator(
            StreamName=self.stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while True:
            reply = self.kinesis.get_records(ShardIterator=iterator)
            yield from (record["Data"] for record in reply["Records"])
            if not reply["Records"] and not reply["MillisBehindLatest"]:
                return
            iterator = reply["NextShardIterator"]


def _kill(pid: int, argument: str) -> None:
    """Kills an extractor that hangs and so does not see its input's end, but no other process with its number."""
    with suppress(psutil.NoSuchProcess):
        extractor = psutil.Process(pid)
        if argument in extractor.cmdline():
            extractor.kill()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Waits for a condition while the process runs."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def bench(kinesis: Any, moto_endpoint: str, tmp_path: Path) -> Bench:
    made = Bench(kinesis, moto_endpoint, tmp_path, unique("extract"))
    kinesis.create_stream(StreamName=made.stream, ShardCount=made.shards)
    return made


@pytest.fixture
def whole() -> Callable[[int], list[tuple[str, int]]]:
    """Returns the counting extractor's units as they are on the stream when each is there once."""
    return lambda units: sorted((f"T{number}", ordinal) for number in range(units) for ordinal in range(3))
