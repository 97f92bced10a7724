"""Measures what the daemon costs a delta: from the shard through a child of ``amazon_kclpy`` to the log.

``kainite run`` runs as in production with children of the record processor of PostgreSQL's changes, a stream that is
served out of memory, and the log in DynamoDB's double (moto's server, or any DynamoDB named with ``--endpoint``). The
table has the processor time of the daemon and of its children, in microseconds a delta, from the beginning of a
backlog until its last unit is in the log, and the daemon's peak memory (VmHWM). The mixes are those of
``benchmarks/whole_way.py``.

*in process* is the part from the emitted lines to the fragments of an append alone (parse, check, sign, identity,
pack), in this process, on the lines that the children of the same mix emit.

    python benchmarks/daemon_path.py [--mixes tpcb orders] [--units N] [--shards N] [--endpoint URL] [--json]
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import javaproperties
import psutil
import psycopg
from runs.machine import warn_unless_quiet
from whole_way import served, write_stream
from whole_way_parts.daemon import await_events, daemon_settings
from whole_way_parts.processes import cpu_of, peak_mb_of
from whole_way_parts.units import MIXES, Mix, records

from kainite.log.format.entry import UnitMeta
from kainite.processors.frame import DELTAS_PER_LINE, Record
from kainite.processors.row_pieces import RecentPieces
from kainite.processors.searched_stream import no_stream
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.admission import Admission
from kainite.uow.catalogue import file as files
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.signing import Signing
from kainite_demo import services
from kainite_demo.postgres_server import postgres
from kainite_demo.processes import Process
from kainite_processors.postgresql_changes import deltas_of

APPLICATION, LOG_TABLE = "daemon-path", "daemon-path-log"
LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Result:
    """One mix; microseconds of processor time a delta, and MB."""

    mix: str
    units: int
    deltas: int
    units_per_second: float
    daemon_us: float
    children_us: float
    peak_mb: float
    in_process_us: float


def measure(mix: Mix, units: int, shards: int, endpoint: str | None) -> Result:
    """Runs the daemon until all units are in the log."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kdp-", ignore_cleanup_errors=True)))
        given = nullcontext(lambda: endpoint) if endpoint else services.moto(folder / "moto.log")
        dynamodb = stack.enter_context(given)()
        assert dynamodb is not None
        write_stream(folder, mix, units, shards)
        deltas = sum(map(len, mix.transactions(units)))
        catalogue = folder / "catalogue.json"
        write_catalogue(folder / "schema", mix, catalogue)
        _, port = stack.enter_context(served(folder, shards, 0))
        daemon = start(folder, f"http://127.0.0.1:{port}", dynamodb)
        stack.callback(daemon.stop, 5.0)
        own = psutil.Process(daemon.pid)
        kinds = {"daemon": [own], "children": own.children(recursive=True)}
        before, began = cpu_of(kinds), time.time()
        (folder / "go").write_text(str(began))
        await_units(DynamoDBStore(services.dynamodb_client(dynamodb), LOG_TABLE), units, daemon)
        seconds, after = time.time() - began, cpu_of(kinds)
        cpu = {kind: round((after[kind] - before[kind]) / deltas * 1e6, 1) for kind in after}
        return Result(
            mix.name, units, deltas, round(units / seconds, 1), cpu["daemon"], cpu["children"],
            peak_mb_of(kinds)["daemon"], in_process(catalogue, mix, units),
        )  # fmt: skip


def write_catalogue(folder: Path, mix: Mix, path: Path) -> None:
    """Writes the catalogue of the mix's tables, read off PostgreSQL."""
    with postgres(folder) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(mix.schema.encode())
        files.write_catalogue(reflect(url, ()), path)


def start(folder: Path, kinesis: str, dynamodb: str) -> Process:
    """Starts the daemon, and waits until all its children have started."""
    settings = folder / "app.properties"
    values = daemon_settings(APPLICATION, kinesis, dynamodb, folder)
    settings.write_text(javaproperties.dumps(values, timestamp=False))
    command = [sys.executable, "-m", "kainite", "--log-format", "json", "run", "-p", str(settings)]
    daemon = Process("daemon", command, folder, services.environment(folder))
    daemon.start()
    await_events(daemon, ("daemon ready", "child started"), LIMIT_S)
    time.sleep(2.0)  # the other children
    return daemon


def await_units(store: DynamoDBStore, units: int, daemon: Process) -> None:
    """Waits until so many units are in the log."""
    found, following, end = 0, 0, time.monotonic() + LIMIT_S
    while found < units:
        time.sleep(0.25)
        for batch in store.read_batches("0", following, data=False):
            found += sum(isinstance(entry.meta, UnitMeta) for entry in batch.entries)
            following = batch.first_id + len(batch.entries)
        if time.monotonic() > end or daemon.status is not None:
            raise SystemExit(daemon.tail())


def in_process(catalogue: Path, mix: Mix, units: int) -> float:
    """Returns microseconds a delta from emitted lines to fragments, in this process; the best of three rounds."""
    lines = list(emit_lines(mix, units))
    signing, deltas = Signing(files.read_catalogue(catalogue)), sum(map(len, mix.transactions(units)))
    return round(min(_admitted(lines, signing) for _ in range(3)) / deltas * 1e6, 1)


def _admitted(lines: list[bytes], signing: Signing) -> float:
    admission, began = Admission(signing), time.process_time()
    for line in lines:
        admission.feed(line)
        admission.take("invalid")
    return time.process_time() - began


def emit_lines(mix: Mix, units: int) -> Iterator[bytes]:
    """Yields what a child of the record processor emits for a shard that holds all units."""
    pieces = RecentPieces(no_stream)
    emitted = (
        item
        for number, transaction in enumerate(mix.transactions(units), 1)
        for data in records(number, transaction)
        for item in deltas_of(Record(data, "key", "place"), pieces)
    )
    while some := list(islice(emitted, DELTAS_PER_LINE)):
        yield json.dumps({"action": "emit", "deltas": some}, separators=(",", ":")).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mixes", nargs="+", choices=sorted(MIXES), default=["tpcb", "orders"])
    parser.add_argument("--units", type=int, default=20_000)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--endpoint", help="address of a DynamoDB; moto's server by default")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warn_unless_quiet()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all processes end with this one
    results = [measure(MIXES[name], options.units, options.shards, options.endpoint) for name in options.mixes]
    if options.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
        return
    print(f"{'':14}{'units/s':>9}{'daemon µs':>11}{'in process':>12}{'children µs':>13}{'peak MB':>9}   a delta")
    for result in results:
        print(
            f"{result.mix:14}{result.units_per_second:9,.0f}{result.daemon_us:11.1f}{result.in_process_us:12.1f}"
            f"{result.children_us:13.1f}{result.peak_mb:9,.0f}"
        )


if __name__ == "__main__":
    main()
