"""Measures the start of ``kainite apply``: the seconds until it applies units, and the processor time that takes.

The parts are a PostgreSQL server and DynamoDB's double on this machine, both of which run already, and an empty log. A
job is started, timed until it says that it applies units, and ended, so many times. Processor time is that of the
driver, of Spark's JVM and of the Python workers, until then. With ``--archive`` it first makes the archive of Spark's
classes (:mod:`kainite_spark.driver.archive_classes`), which stays in the environment; without it, an archive that is
there is used.

    python benchmarks/apply_start.py [--starts N] [--archive] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import javaproperties
import psutil
import psycopg
from runs.machine import warn_unless_quiet
from whole_way_parts.daemon import await_events
from whole_way_parts.units import MIXES

from kainite_demo import services
from kainite_demo.postgres_server import postgres
from kainite_demo.processes import Process
from kainite_spark.driver.archive_classes import archive_classes

LIMIT_S = 180.0


def start_once(number: int, folder: Path, settings: Path) -> dict[str, float]:
    """Starts a job, whose log is a file of its own, and ends it; returns seconds, by what took them."""
    command = [sys.executable, "-m", "kainite", "--log-format", "json", "apply", "-p", str(settings)]
    job = Process(f"apply job {number}", command, folder, services.environment(folder))
    began = time.monotonic()
    job.start()
    try:
        await_events(job, ("apply job started",), LIMIT_S)
        seconds = time.monotonic() - began
        driver = psutil.Process(job.pid)
        spent = {"driver": 0.0, "JVM": 0.0, "workers": 0.0}
        for process in (driver, *driver.children(recursive=True)):
            times = process.cpu_times()
            kind = "driver" if process == driver else "JVM" if "java" in process.name() else "workers"
            spent[kind] += times.user + times.system
        return {"seconds": seconds, **{f"processor seconds, {kind}": each for kind, each in spent.items()}}
    finally:
        job.stop(30.0)


def run(starts: int) -> dict[str, float]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kas-", ignore_cleanup_errors=True)))
        target = stack.enter_context(postgres(folder / "target"))
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute(MIXES["tpcb"].schema.encode())
        dynamodb = stack.enter_context(services.moto(folder / "moto.log"))()
        settings = folder / "app.properties"
        values = {
            "applicationName": "apply-start", "regionName": services.REGION, "dynamoDBEndpoint": dynamodb,
            "logTableName": "apply-start-log", "target": target, "applyMaster": "local[2]",
        }  # fmt: skip
        settings.write_text(javaproperties.dumps(values, timestamp=False))
        found = [start_once(number, folder, settings) for number in range(starts)]
        return {name: round(median(each[name] for each in found), 2) for name in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--archive", action="store_true", help="make the archive of Spark's classes first")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warn_unless_quiet()
    if options.archive:
        archive_classes()
    found = run(options.starts)
    if options.json:
        print(json.dumps([{"name": name, "value": value} for name, value in found.items()], indent=2))
        return
    for name, value in found.items():
        print(f"{name:28}{value:8.2f}")


if __name__ == "__main__":
    main()
