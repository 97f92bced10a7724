"""Shard children that speak markers, under a real consumer; ``markers_worker.py`` says what they do."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kainite.base.markers import Batching
from kainite.log.format.entry import EntryKind, UnitMeta, UnitStatus
from kainite.observe.meter import Meter
from kainite.observe.metric import REJECTED_MESSAGES, Metric
from kainite.settings import ChildProtocol, MarkersSettings, OnBadMessage, OnDeath, load
from kainite.store.memory import MemoryStore
from kainite.worker.consumer_states import ConsumerState
from kainite.worker.supervisor import supervise
from support.daemon_world import CHILDREN, LIMIT, World, units_in
from support.kinesis_double import KinesisDouble
from support.names import unique
from support.waiting import until

SHARD = "shardId-000000000000"


@dataclass
class Worker:
    """``markers_worker.py`` and what it noted."""

    notes_file: Path
    settings: MarkersSettings = field(default_factory=MarkersSettings)
    options: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        return (sys.executable, str(CHILDREN / "markers_worker.py"), str(self.notes_file), *self.options)

    @property
    def changes(self) -> dict[str, Any]:
        return {"protocol": ChildProtocol.MARKERS, "markers": self.settings}

    def notes(self) -> list[dict[str, Any]]:
        text = self.notes_file.read_text() if self.notes_file.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def requests(self) -> list[list[str]]:
        return [note["messages"] for note in self.notes() if "messages" in note]

    def starts(self) -> int:
        return sum("shard" in note for note in self.notes())


class Counted:
    """The sums of a meter's observations."""

    def __init__(self) -> None:
        self.values: Counter[Metric] = Counter()

    def observe(self, metric: Metric, value: float, shard: str | None) -> None:
        self.values[metric] += int(value)


def failed_units(store: MemoryStore) -> dict[str, str]:
    """Causes of the failed units in the log."""
    entries = [entry for batch in store.read_batches("0", 0, strong=True) for entry in batch.entries]
    metas = [entry.meta for entry in entries if entry.kind is EntryKind.UNIT]
    return {meta.uow: meta.cause for meta in metas if isinstance(meta, UnitMeta) and meta.cause is not None}


def events(caplog: pytest.LogCaptureFixture, name: str) -> list[dict[str, Any]]:
    return [record.kainite_fields for record in caplog.records if record.getMessage() == name]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("batching", "requests"),
    [
        (Batching.SINGLE, [["delta:T-1"], ["none"], ["delta:T-2"]]),
        (Batching.WORKER, [["delta:T-1", "none"], ["delta:T-2"]]),
        (Batching.SUPERVISOR, [["delta:T-1", "none"], ["delta:T-2"]]),
    ],
)
async def test_a_shards_whole_life(
    batching: Batching, requests: list[list[str]], ending: World, double: KinesisDouble
) -> None:
    last = [double.put(payload) for payload in (b"delta:T-1", b"none", b"delta:T-2")][-1]
    worker, store = Worker(ending.tmp / "notes", MarkersSettings(batching=batching, batch_size=2)), MemoryStore()
    async with (
        ending.log(store) as log,
        ending.consumer(worker.command, log=log, **worker.changes) as (consumer, task),
    ):
        await until(lambda: ending.stored_checkpoint() == str(last))
        assert units_in(store) == ["T-1", "T-2"]
        double.split(SHARD)
        await asyncio.wait_for(asyncio.shield(task), LIMIT)
        assert consumer.state is ConsumerState.COMPLETE
    assert ending.stored_checkpoint() == "SHARD_END"
    assert worker.notes()[0] == {"shard": SHARD, "arguments": {}}
    assert worker.requests() == requests
    assert worker.notes()[-1] == {"end": True}


async def test_a_stop_closes_the_workers_input_and_lets_it_end(ending: World, double: KinesisDouble) -> None:
    double.put(b"none")
    worker = Worker(ending.tmp / "notes")
    async with ending.consumer(worker.command, **worker.changes) as (consumer, task):
        await until(lambda: worker.requests() == [["none"]])
        consumer.stop()
        await asyncio.wait_for(asyncio.shield(task), LIMIT)
        assert consumer.state is ConsumerState.COMPLETE
    assert worker.notes()[-1] == {"end": True}


@pytest.mark.parametrize("batching", Batching)
@pytest.mark.parametrize("half", ["", "{", '{"uow":"T-1","end":true,"count":0}\n'])
async def test_a_worker_killed_in_an_answer_is_started_again_and_nothing_counts_twice(
    batching: Batching, half: str, ending: World, double: KinesisDouble
) -> None:
    last = [double.put(payload) for payload in (b"delta:T-1", b"die", b"delta:T-2")][-1]
    settings = MarkersSettings(batching=batching, batch_size=2)
    worker, store = Worker(ending.tmp / "notes", settings, (f"last={half}",)), MemoryStore()
    async with ending.log(store) as log, ending.consumer(worker.command, log=log, **worker.changes):
        await until(lambda: ending.stored_checkpoint() == str(last))
        assert [uow for uow in units_in(store) if not uow.startswith("invalid:")] == ["T-1", "T-2"]
        assert all(unit.status is UnitStatus.IN_PROGRESS for unit in log.state.units.values() if unit.uow[:2] == "T-")
    assert worker.starts() == 2


@pytest.mark.parametrize(("options", "payload"), [((), b"hang"), (("flush=never",), b"none")])
async def test_a_worker_that_never_ends_its_answer_is_replaced(
    options: tuple[str, ...], payload: bytes, ending: World, double: KinesisDouble, caplog: pytest.LogCaptureFixture
) -> None:
    double.put(payload)
    worker = Worker(ending.tmp / "notes", options=options)
    async with ending.consumer(worker.command, reply_timeout=0.5, kill_after=0.05, **worker.changes):
        await until(lambda: worker.starts() >= 2)
    assert "did not answer processRecords in 0.5 s" in str(events(caplog, "shard failed")[0]["error"])


@pytest.mark.parametrize(("policy", "starts"), [(OnDeath.SKIP, 2), (OnDeath.ONCE, 3), (OnDeath.TRIES, 4)])
async def test_what_every_worker_dies_on_is_left_out_and_reported(
    policy: OnDeath, starts: int, ending: World, double: KinesisDouble, caplog: pytest.LogCaptureFixture
) -> None:
    numbers = [double.put(payload) for payload in (b"delta:T-1", b"die always", b"delta:T-2")]
    worker, store = Worker(ending.tmp / "notes", MarkersSettings(on_death=policy)), MemoryStore()
    async with ending.log(store) as log, ending.consumer(worker.command, log=log, **worker.changes):
        await until(lambda: ending.stored_checkpoint() == str(numbers[2]))
    name = f"invalid:{SHARD}:{numbers[1]}"
    assert units_in(store) == ["T-1", "T-2", name]
    assert f"record {numbers[1]}: left out after {starts - 1} tries" in failed_units(store)[name]
    assert worker.starts() == starts
    assert worker.requests().count(["delta:T-2"]) == 1
    assert events(caplog, "records left out")[0]["first"] == numbers[1]
    assert events(caplog, "message rejected")[0]["first"] == str(numbers[1])


async def test_by_default_nothing_is_ever_left_out(
    ending: World, double: KinesisDouble, caplog: pytest.LogCaptureFixture
) -> None:
    number = [double.put(payload) for payload in (b"none", b"die always")][1]
    worker = Worker(ending.tmp / "notes")
    async with ending.consumer(worker.command, poison_tries=2, **worker.changes):
        await until(lambda: worker.starts() >= 4)
        assert ending.stored_checkpoint() == "TRIM_HORIZON"
    assert [fields["first"] for fields in events(caplog, "poison batch")] == [number]


async def test_bad_messages_become_failed_units_and_the_rest_goes_on(ending: World, double: KinesisDouble) -> None:
    payloads = (b"bad:no JSON", b"delta:T-1", b"none", b"two\nlines", b"junk", b"delta:T-2")
    numbers = [double.put(payload) for payload in payloads]
    worker, store = Worker(ending.tmp / "notes"), MemoryStore()
    async with ending.log(store) as log, ending.consumer(worker.command, log=log, **worker.changes):
        await until(lambda: ending.stored_checkpoint() == str(numbers[-1]))
        sound = {unit.uow for unit in log.state.units.values() if unit.status is UnitStatus.IN_PROGRESS}
        assert sound == {"T-1", "T-2"}
        assert "T-junk" in {unit.uow for unit in log.state.units.values()} | set(log.state.open)
    causes = failed_units(store)
    assert causes[f"invalid:{SHARD}:{numbers[0]}"] == f"record {numbers[0]}: no JSON"
    assert f"record {numbers[3]}: a message of 9 bytes holds" in causes[f"invalid:{SHARD}:{numbers[3]}"]
    assert worker.requests() == [["bad:no JSON"], ["delta:T-1"], ["none"], ["junk"], ["delta:T-2"]]


async def test_bad_messages_are_logged_and_counted_without_units_of_work(
    ending: World, double: KinesisDouble, caplog: pytest.LogCaptureFixture
) -> None:
    numbers = [double.put(b"bad:cause %d" % number) for number in range(13)]
    worker = Worker(ending.tmp / "notes", MarkersSettings(batching=Batching.WORKER, batch_size=1))
    counted = Counted()
    async with ending.consumer(worker.command, meter=Meter(counted), **worker.changes):
        await until(lambda: ending.stored_checkpoint() == str(numbers[-1]))
    assert [fields["cause"] for fields in events(caplog, "message rejected")] == [f"cause {n}" for n in range(13)]
    assert counted.values[REJECTED_MESSAGES] == 13


async def test_a_message_that_is_rejected_in_each_of_several_tries_is_counted_once(
    ending: World, double: KinesisDouble, caplog: pytest.LogCaptureFixture
) -> None:
    for payload in (b"bad:no JSON", b"die"):
        last = double.put(payload)
    worker, counted = Worker(ending.tmp / "notes"), Counted()
    async with ending.consumer(worker.command, meter=Meter(counted), **worker.changes):
        await until(lambda: ending.stored_checkpoint() == str(last))
    assert worker.requests().count(["bad:no JSON"]) == 2
    assert counted.values[REJECTED_MESSAGES] == 1


@pytest.mark.parametrize("payload", [b"bad:no JSON", b"two\nlines"])
async def test_a_bad_message_may_stop_its_shard_until_it_is_mended(
    payload: bytes, ending: World, double: KinesisDouble, caplog: pytest.LogCaptureFixture
) -> None:
    double.put(b"none")
    number = double.put(payload)
    settings = MarkersSettings(on_bad_message=OnBadMessage.FAIL, on_death=OnDeath.SKIP)
    worker = Worker(ending.tmp / "notes", settings)
    async with ending.consumer(worker.command, **worker.changes):
        await until(lambda: len(events(caplog, "shard failed")) >= 3)
        assert ending.stored_checkpoint() == "TRIM_HORIZON"
    assert f"cannot go on: record {number}: " in str(events(caplog, "shard failed")[0]["error"])


async def test_a_daemon_tells_its_workers_the_markers_of_its_settings(
    kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path
) -> None:
    world = World(kinesis, dynamodb, unique("stream"), tmp_path)
    world.create_stream()
    last = world.put("T-1\n", "T-2")[-1]
    settings = tmp_path / "app.properties"
    settings.write_text(
        f"applicationName = {world.name}\nstreamName = {world.name}\nregionName = us-east-1\n"
        f"kinesisEndpoint = {moto_endpoint}\ndynamoDBEndpoint = {moto_endpoint}\n"
        "initialPositionInStream = TRIM_HORIZON\nidleTimeBetweenReadsInMillis = 50\n"
        f"executableName = perl {CHILDREN / 'markers.pl'} {tmp_path / 'notes'}\n"
        "childProtocol = markers\nmarkerEom = \\u001e\nmarkerEop = EOP\\\\x1f\nmarkersArguments = -e {eom} -E {eop}\n"
    )
    notes = tmp_path / "notes"
    stop = asyncio.Event()
    running = asyncio.create_task(supervise(load(settings), stop))
    try:
        await until(lambda: running.done() or (notes.exists() and len(notes.read_text().splitlines()) == 2))
    finally:
        stop.set()
        await running
    assert notes.read_text().split() == [b"T-1\n".hex(), b"T-2".hex()]
    assert world.stored_checkpoint() == last
