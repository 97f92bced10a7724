"""One run of a scenario of an extraction: ``kainite extract``, its program, and the verdict.

=================================================================  =====================================================
real                                                               simulated
=================================================================  =====================================================
the extraction: cycles, delivery, setbacks, the offset's file and  PostgreSQL with its WAL and its slot, and the bytes
its lock, the sink, the spread, aggregates, PutRecords' retries    of its walsender (``extract_source``)
``kainite-extract-postgresql``, from its options to its exit       libpq and psycopg: connections, commands and queries
status: requests and answers, the slot's checks, frames,           (``extract_connections``)
pgoutput, transactions, numbers, records, heartbeats
the dialect of the pipe between them                               the pipe, and the program's process
                                                                   (``extract_program``); Kinesis (``extract_stream``)
=================================================================  =====================================================

The extraction is started again whenever it ends, as an init system does it. When faults have stopped, everything that
has committed must be on the stream and confirmed to the slot within :data:`PATIENCE` seconds; or the extraction must
have ended with the error that tells why the source cannot be read (``extract_trouble``).
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest import mock

import kainite.extract.run
import kainite.kinesis.write.put
from kainite.extract.offsets.begin import begin_at
from kainite.extract.offsets.offset_file import OffsetFile, offset_file_of
from kainite.extract.offsets.place import Place
from kainite.extract.output.sink import Sink
from kainite.extract.progress import Showing
from kainite.extract.status import ExtractStatus
from kainite.settings import (
    ApplySettings,
    AwsSettings,
    ChildSettings,
    ExtractMode,
    ExtractOffsets,
    ExtractSettings,
    ExtractSpread,
    LeaseSettings,
    LogSettings,
    Settings,
    StreamSettings,
    UowSettings,
)
from kainite.uow.catalogue.tables import Catalogue
from simulation.extract_history import history
from simulation.extract_oracle import ExtractOracle
from simulation.extract_program import URL, ExtractorPipes, program
from simulation.extract_source import FIRST_LSN, SimSource
from simulation.extract_stream import SimPool, WritableKinesis
from simulation.extract_trouble import Trouble
from simulation.extract_wire import lsn_text
from simulation.faults import Faults
from simulation.hosts import Hosts
from simulation.loop import Hub, Process, SimTime
from simulation.parts import edges
from simulation.plan import Incident, Scenario
from simulation.stream import SimStream
from simulation.world import Verdict, without_error

PATIENCE: Final = 300.0
"""Seconds, after the last fault, within which everything must be on the stream."""

LATE: Final = 30.0
"""Seconds for which the world goes on after that: longer than any request is on its way."""

_SAVE_FAULTS: Final = frozenset({"slow", "kill_before", "kill_after", "freeze_before", "freeze_after"})


class ExtractWorld:
    """Everything that outlives the processes."""

    def __init__(self, plan: Scenario, folder: Path, left_out: Collection[str] = ()) -> None:
        assert plan.more.extraction is not None
        self._plan = plan
        self._extraction = plan.more.extraction
        self._hub = Hub()
        self._faults = Faults(self._hub, plan.seed, plan.rates, plan.until, left_out)
        self._faults.outages.extend(plan.outages)
        self._hosts = Hosts(plan, self._hub, self._faults)
        self._settings = {0: _settings(plan, folder / "offset")}
        if self._extraction.rival:
            self._settings[1] = _settings(plan, folder / {"the same": "offset"}.get(self._extraction.rival, "copy"))
        self._stream = SimStream(self._hub, plan.shards)
        self._oracle = ExtractOracle(self._hosts.broken)
        self._source = SimSource(self._faults, self._extraction.sender_timeout, self._oracle.confirms)
        self._oracle.source = self._source
        self._trouble = Trouble(self._source, self._oracle, self._put_back)
        self._names = itertools.count(1)
        self._settled = False
        self._real_save = OffsetFile.save

    def run(self) -> Verdict:
        """Runs the scenario to its verdict."""
        plan, hub = self._plan, self._hub
        for settings in {settings.extract.offset_file: settings for settings in self._settings.values()}.values():
            begin_at(settings, f'{{"lsn":"{lsn_text(FIRST_LSN)}","number":0}}')
        options = {"source": URL, "slot": "shop", "publication": "shop", "tables": (), "truncate": "fail",
                   "passed_over": (), "heartbeat": self._extraction.heartbeat, "journal": None}  # fmt: skip
        parts: Any = {"client": lambda *_: None, "store_of": self._hosts.store_of, "catalogue": lambda _: Catalogue({})}
        at_the_source = program(self._faults, self._source, options, self._extraction.pipe_bytes, self._hosts.process)
        with edges(hub, self._faults, plan, **parts), at_the_source, self._at_the_extraction():
            try:
                problem = without_error(self._live)
            finally:
                hub.close()
        notes = tuple(self._hosts.notes) if problem else ()
        return Verdict(
            plan.seed, problem, tuple(self._faults.happened), hub.now, sum(self._faults.counts.values()), notes
        )

    def _live(self) -> str | None:
        hub, plan = self._hub, self._plan
        works = history(Random(f"extraction {plan.seed}"), plan.transactions, plan.until, self._extraction.most_rows)
        for work in works:
            hub.after(work.at, functools.partial(self._source.commit, work))
        hub.after(0.7, self._write_other)
        for slot in self._settings:
            self._start(slot)
        self._hosts.expect(self._befall)
        hub.after(1.0, self._audit)
        hub.run(lambda: self._settled, plan.until + PATIENCE)
        if not self._settled:
            return f"{PATIENCE:g} s after the last fault: {self._missing()}"
        hub.run(lambda: False, max(hub.now, self._faults.latest) + LATE)
        return self._missing()

    # The extraction.

    def _start(self, slot: int) -> None:
        process = self._hosts.process(f"extract.{next(self._names)}", 0)
        stop = asyncio.Event()
        self._hosts.occupy(slot, process, lambda: self._start(slot))
        self._hosts.stops[slot] = lambda: process.loop.enter(stop.set)
        main = self._extract(process, self._settings[slot], stop)
        process.start(main, lambda error: self._hosts.ended(process, error))

    async def _extract(self, process: Process, settings: Settings, stop: asyncio.Event) -> None:
        """Does what :func:`kainite.extract.run.run` does, without signals."""
        file = offset_file_of(settings)
        assert file is not None
        lock = ExitStack()
        lock.enter_context(file.locked())
        process.on_death.append(lock.close)
        showing = Showing(line=False, events=False)
        extracting = asyncio.create_task(
            kainite.extract.run.extract(settings, file, showing, stop, once=False), name=process.name
        )
        await kainite.extract.run._until_over(extracting, stop, settings.child.shutdown_grace)  # noqa: SLF001

    @contextmanager
    def _at_the_extraction(self) -> Iterator[None]:
        """Puts the stream, threads and clocks of the simulation in the place of the real ones, and looks at what is
        put and stored."""
        hub, run = self._hub, kainite.extract.run
        put = Sink.put
        clocks = SimTime(hub)

        async def puts(sink: Sink, messages: Any) -> None:
            self._oracle.puts(messages)
            await put(sink, messages)

        with ExitStack() as stack:
            for place, name, value in (
                (run, "aws", _Clients(self._client)),
                (run, "ExtractStatus",
                 functools.partial(ExtractStatus, clock=clocks.monotonic, wall_clock=clocks.time)),
                (kainite.kinesis.write.put, "ThreadPoolExecutor", lambda *_: SimPool(hub)),
                (OffsetFile, "save", lambda file, stored: self._save(file, stored)),
                (Sink, "put", puts),
            ):  # fmt: skip
                stack.enter_context(mock.patch.object(place, name, value))
            yield

    def _client(self) -> WritableKinesis:
        assert self._hub.process is not None
        return WritableKinesis(self._stream, self._faults, self._hub.process, self._oracle.on_stream)

    def _save(self, file: OffsetFile, place: Place) -> None:
        """Stores a place: before it and behind it the process may be killed or stand still."""
        process = self._hub.process
        assert process is not None
        name = self._faults.named(f"{process.name} offset.save")
        fault = self._faults.of(name, _SAVE_FAULTS) or ""
        self._hub.pause(self._faults.between(0.0, 5.0 if fault == "slow" else 0.01, "save", name))
        self._strike(process, fault, name, "before")
        self._oracle.stores(file.path, place.start)
        self._real_save(file, place)
        self._strike(process, fault, name, "after")

    def _strike(self, process: Process, fault: str, name: str, when: str) -> None:
        if fault == f"kill_{when}":
            process.kill()
            self._hub.park()
        if fault == f"freeze_{when}":
            process.freeze()
            self._faults.later(self._faults.between(0.5, 40.0, "freeze", name), process.resume)
            self._hub.pause(0.0)

    # What befalls it.

    def _befall(self, incident: Incident) -> None:
        programs = [one.process for one in ExtractorPipes.descriptors.of.values() if not one.process.dead]
        match incident.what:
            case "kill program" if programs:
                programs[-1].kill()
            case "freeze program" if programs:
                programs[-1].freeze()
                self._faults.later(incident.amount, programs[-1].resume)
            case "split":
                self._stream.split(self._stream.open[0])
            case "merge" if len(self._stream.open) > 1:
                self._stream.merge(*sorted(self._stream.open, key=lambda shard: shard.start)[:2])
            case what if not what.endswith(("program", "merge")):
                self._trouble.befalls(what, incident.amount)

    def _put_back(self, path: Path, place: dict[str, Any]) -> None:
        for process in self._hosts.running.values():
            process.kill()
        file = next(file for file in map(offset_file_of, self._settings.values()) if file and file.path == path)
        self._real_save(file, Place(place))
        self._oracle.stored[path].append(place)

    def _write_other(self) -> None:
        self._source.write_other(8 * int(1 + 500 * self._faults.chance("other", self._hub.now)))
        self._source.pump()
        if self._hub.now < self._plan.until:
            self._hub.after(1.7, self._write_other)

    # What is looked at.

    def _missing(self) -> str | None:
        if refused := self._trouble.refused:
            told = any(refused in note for note in self._hosts.notes)
            return None if told else f"no extraction has ended with {refused!r}: {self._hosts.notes[-3:]}"
        missing = self._oracle.missing(before=self._plan.until)  # heartbeats go on
        return missing and f"{missing}; ended: {self._hosts.notes[-3:]}"

    def _audit(self) -> None:
        self._settled = self._hub.now > self._plan.until and self._missing() is None
        self._hub.after(1.0, self._audit)


class _Clients:
    """Stands for ``kainite.aws.clients``."""

    def __init__(self, made: Any) -> None:
        self.client = lambda *_: made()


def _settings(plan: Scenario, offset_file: Path) -> Settings:
    extraction = plan.more.extraction
    assert extraction is not None
    extract = ExtractSettings(
        ("kainite-extract-postgresql",), ExtractMode.CYCLIC, ExtractOffsets.KAINITE, offset_file,
        interval=0.5, reply_timeout=20.0, tries=extraction.tries, hold_bytes=extraction.hold_bytes,
        ahead_bytes=extraction.ahead_bytes,
        spread=ExtractSpread.RECORD if extraction.by_record else ExtractSpread.UNIT,
        aggregation=extraction.aggregate > 0, aggregation_bytes=extraction.aggregate or 1,
    )  # fmt: skip
    child = ChildSettings(("child",), shutdown_grace=5.0, kill_after=1.0, restart_backoff=0.3, restart_backoff_max=4.0)
    return Settings(
        path=None,
        aws=AwsSettings(),
        stream=StreamSettings("s", shard_sync=10.0),
        leases=LeaseSettings("a", "a", "w"),
        child=child,
        log=LogSettings("l", "w"),
        uow=UowSettings(),
        apply=ApplySettings(),
        extract=extract,
    )
