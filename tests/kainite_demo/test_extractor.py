"""The extractor as a process that is killed at any moment: everything once or more, one number each."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import psycopg
import pytest

from kainite.errors import SourceError
from kainite_demo import extractor_state, services
from kainite_demo.extractor_state import Progress
from kainite_demo.json_lines import JsonLines
from kainite_demo.replication import SourceSlot, create_slot

SHARDS = 3
LIMIT = 60.0


class Bench:
    """A source, a stream and the command line of the extractor between them."""

    def __init__(self, source: SourceSlot, kinesis: Any, endpoint: str, folder: Path) -> None:
        self.source = source
        self.kinesis = kinesis
        self.stream = f"extractor-{uuid4().hex}"
        self.output = folder / "extractor.jsonl"
        self.state = folder / "extractor.state"
        services.create_stream(kinesis, self.stream, SHARDS)
        with create_slot(source) as slot:
            extractor_state.save(self.state, Progress(source.slot, slot.lsn, 0))
        options = {
            "source": source.url,
            "slot": source.slot,
            "publication": source.publication,
            "stream": self.stream,
            "state": str(self.state),
            "shards": str(SHARDS),
            "kinesis-endpoint": endpoint,
            "region": "us-east-1",
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        self.command = [sys.executable, "-m", "kainite_demo.extractor", *arguments]

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        with self.output.open("wb") as stdout:
            process = subprocess.Popen(self.command, stdout=stdout, stderr=subprocess.PIPE)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def units(self) -> dict[str, list[dict[str, Any]]]:
        """Everything on the stream, by unit."""
        units = defaultdict(list)
        for shard in self.kinesis.list_shards(StreamName=self.stream)["Shards"]:
            for record in self._records(shard["ShardId"]):
                units[record["uow"]].append(record)
        return dict(units)

    def _records(self, shard: str) -> Iterator[dict[str, Any]]:
        iterator = self.kinesis.get_shard_iterator(
            StreamName=self.stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while True:
            reply = self.kinesis.get_records(ShardIterator=iterator)
            yield from (orjson.loads(record["Data"]) for record in reply["Records"])
            if not reply["Records"] and not reply["MillisBehindLatest"]:
                return
            iterator = reply["NextShardIterator"]


@pytest.fixture
def bench(source: SourceSlot, kinesis: Any, moto_endpoint: str, tmp_path: Path) -> Bench:
    return Bench(source, kinesis, moto_endpoint, tmp_path)


class Application:
    """Writes transactions of one to six inserts, some with an update, in a thread until it is stopped."""

    def __init__(self, url: str, seed: int, pause: float = 0.005) -> None:
        self.committed = 0
        self._url = url
        self._choice = random.Random(seed)
        self._pause = pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Application:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._stop.wait(self._pause):
                with connection.transaction():
                    self._write(connection)
                self.committed += 1

    def _write(self, connection: psycopg.Connection) -> None:
        first = 10 * self.committed
        for part in range(self._choice.randint(1, 6)):
            connection.execute("INSERT INTO item VALUES (%s, %s, 1.10)", [first + part, str(self.committed)])
        if self._choice.random() < 0.5:
            connection.execute("UPDATE item SET price = 2.20 WHERE id = %s", [first])


def wait_for_number(bench: Bench, process: subprocess.Popen[bytes], number: int) -> None:
    deadline = time.monotonic() + LIMIT
    while extractor_state.load(bench.state, bench.source.slot).number < number:
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"the extractor does not get on: {process.communicate()}")
        time.sleep(0.01)


def check_units(units: dict[str, list[dict[str, Any]]], transactions: int) -> None:
    """Dense numbers, one unit each, whole, and in the source's order of commits."""
    by_number: dict[int, str] = {}
    for uow, records in units.items():
        (number,) = {record["number"] for record in records}
        (count,) = {record["count"] for record in records}
        changes = [record for record in records if not record.get("end")]
        assert by_number.setdefault(number, uow) == uow
        assert {change["ordinal"] for change in changes} == set(range(count))
        assert len(changes) < len(records), "the end is missing"
        assert {change["new"].get("name", "") for change in changes} == {str(number - 1)}
    assert sorted(by_number) == list(range(1, transactions + 1))


def test_each_transaction_arrives_spread_over_the_shards(bench: Bench) -> None:
    with bench.running() as process:
        with Application(bench.source.url, seed=1) as application:
            wait_for_number(bench, process, 30)
        wait_for_number(bench, process, application.committed)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=LIMIT)
    units = bench.units()
    check_units(units, application.committed)
    events = list(JsonLines(bench.output).read())
    captured = [commit for event in events for commit in event.get("commits", [])]
    assert (process.returncode, errors) == (0, b"")
    assert [event["event"] for event in (events[0], events[-1])] == ["started", "stopped"]
    assert sum(event.get("records", 0) for event in events) == sum(len(records) for records in units.values())
    assert {uow: changes for uow, _, changes in captured} == {uow: unit[0]["count"] for uow, unit in units.items()}
    assert all(abs(time.time() - commit / 1e6) < 300 for _, commit, _ in captured)


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_any_moment_nothing_is_missing_and_numbers_stay(bench: Bench, seed: int) -> None:
    choice = random.Random(seed)
    with Application(bench.source.url, seed) as application:
        for _ in range(6):
            reached = extractor_state.load(bench.state, bench.source.slot).number
            with bench.running() as process:
                wait_for_number(bench, process, reached + choice.randint(1, 40))
                time.sleep(choice.uniform(0.0, 0.1))  # any moment is as good as another: that is the test
                process.kill()
    with bench.running() as process:
        wait_for_number(bench, process, application.committed)
    units = bench.units()
    check_units(units, application.committed)
    assert any(len(records) > records[0]["count"] + 1 for records in units.values()), "no kill met a put"


def test_without_its_state_file_it_does_not_start(bench: Bench) -> None:
    bench.state.unlink()
    with bench.running() as process:
        _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert errors.decode().startswith(f"extractor: {bench.state}: no state of slot")
    assert errors.count(b"\n") == 1


def test_a_truncate_ends_it_with_one_clear_line(bench: Bench) -> None:
    with psycopg.connect(bench.source.url) as connection:
        connection.execute("TRUNCATE item")
    with bench.running() as process:
        _, errors = process.communicate(timeout=LIMIT)
    assert (process.returncode, errors.count(b"\n")) == (1, 1)
    assert b"TRUNCATE of public.item" in errors


def test_a_state_file_survives_what_was_half_written(tmp_path: Path) -> None:
    path = tmp_path / "state"
    extractor_state.save(path, Progress("s", 5, 2))
    path.with_name("state.new").write_bytes(b'{"slot"')
    assert extractor_state.load(path, "s") == Progress("s", 5, 2)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"slot":"s","lsn":1}', b'{"slot":"s","lsn":"x","number":1}'])
def test_a_broken_state_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state").write_bytes(content)
    with pytest.raises(SourceError, match="not a state file"):
        extractor_state.load(tmp_path / "state", "s")


def test_another_slots_state_file_is_refused(tmp_path: Path) -> None:
    extractor_state.save(tmp_path / "state", Progress("other", 5, 2))
    with pytest.raises(SourceError, match="state of slot 'other', not of 's'"):
        extractor_state.load(tmp_path / "state", "s")
