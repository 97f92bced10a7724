"""The price of two targets: the same units with two tables in one target, and with one table in each of two.

A unit inserts a row of each of two tables of SQLite. Its log is in memory, and the jobs' tasks run in this process, so
what is measured is processor time of the apply jobs, from the log to the outcomes, without Spark: of one job, of both
jobs together, and of the slower one of them, which is what a unit waits for where each has a processor. Both ways are
measured in turns; medians are compared.

With ``--together`` two PostgreSQL servers are measured, which write to disk at each commit: by the wall clock, units in
one of them, units with a row in each that each target commits by itself, and units with a row in each that both commit
together (``targetCommit = atomic``). ``--group 1`` measures units one by one, so their latency.

    python benchmarks/two_targets.py [--units N] [--rounds N] [--together [--group N]] [--json]
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from runs.machine import warn_unless_quiet

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))  # logs and jobs are made as the tests make them

from kainite.settings.assignment import TableAssignment  # noqa: E402
from kainite.store.memory import MemoryStore  # noqa: E402
from kainite_spark.driver.job import ApplyJob  # noqa: E402
from kainite_spark.executor.apply_options import ApplyOptions  # noqa: E402
from support.atomic_world import AtomicWorld  # noqa: E402
from support.inline_runner import InlineRunner  # noqa: E402
from support.preparing_postgres import new_database, two_servers  # noqa: E402
from support.several_world import SeveralWorld, contact, item  # noqa: E402
from support.stores import Database  # noqa: E402

TWO = TableAssignment((("shop", ()), ("crm", ("contact", "visit"))))
ONE = TableAssignment((("shop", ()),))


def world(folder: Path, targets: TableAssignment) -> SeveralWorld:
    """Returns a log with these targets; one target has the tables of both."""
    databases = {}
    for name in targets.names:
        sqlite3.connect(folder / f"{name}.db").close()
        databases[name] = Database(f"sqlite:///{folder / name}.db")
    return SeveralWorld(MemoryStore(), databases, targets)


def spent(targets: TableAssignment, units: int) -> dict[str, float]:
    """Returns the microseconds of processor time that a unit takes, by target."""
    with tempfile.TemporaryDirectory() as folder:
        made = world(Path(folder), targets)
        for number in range(units):
            made.log.unit(f"T-{number}", item(number), contact(number))
        found = {}
        for name in targets.names:
            job = made.job(name)
            began = time.process_time()
            job.run(once=True)
            found[name] = (time.process_time() - began) / units * 1e6
        began = time.process_time()
        made.log.take_outcomes()
        found["copying the outcomes"] = (time.process_time() - began) / units * 1e6
        assert not made.log.state.units
        return found


def measured(units: int, rounds: int) -> dict[str, float]:
    """Returns the medians, microseconds a unit."""
    one: list[dict[str, float]] = []
    two: list[dict[str, float]] = []
    for _ in range(rounds):
        one.append(spent(ONE, units))
        two.append(spent(TWO, units))
    return dict(_medians(one, two))


def together(units: int, rounds: int, group: int) -> dict[str, float]:
    """Returns the medians of two servers, microseconds of the wall clock a unit.

    Args:
        units: in each round.
        rounds: of each way, in turns.
        group: the most units of a target transaction.
    """
    found: dict[str, list[float]] = {}
    with two_servers(fsync="on") as servers:
        for _ in range(rounds):
            for name, way in (("one target", _one), ("each by itself", _each), ("together", _atomic)):
                with new_database(servers[0]) as shop, new_database(servers[1]) as crm:
                    took = way({"shop": Database(shop), "crm": Database(crm)}, units, group)
                found.setdefault(name, []).append(took / units * 1e6)
    return {name: statistics.median(taken) for name, taken in found.items()}


def _one(databases: dict[str, Database], units: int, group: int) -> float:
    """Returns the seconds of a job for units that touch the first target alone."""
    with closing(SeveralWorld(MemoryStore(), {"shop": databases["shop"]}, ONE)) as made:
        for number in range(units):
            made.log.unit(f"T-{number}", item(number), contact(number))
        return _took(_job(made, "shop", group))


def _each(databases: dict[str, Database], units: int, group: int) -> float:
    """Returns the seconds of the slower one of two jobs, for units that touch both targets."""
    with closing(SeveralWorld(MemoryStore(), databases, TWO)) as made:
        for number in range(units):
            made.log.unit(f"T-{number}", item(number), contact(number))
        return max(_took(_job(made, name, group)) for name in TWO.names)


def _job(made: SeveralWorld, name: str, group: int) -> ApplyJob:
    runner = InlineRunner(made.store, "0", made.targets[name].target, options=ApplyOptions(group_units=group))
    return made.job(name, runner=runner)


def _atomic(databases: dict[str, Database], units: int, group: int) -> float:
    """Returns the seconds of the one job for both targets."""
    with closing(AtomicWorld(MemoryStore(), databases, TWO)) as made:
        for number in range(units):
            made.log.unit(f"T-{number}", item(number), contact(number))
        return _took(made.job(options=ApplyOptions(group_units=group)))


def _took(job: ApplyJob) -> float:
    began = time.perf_counter()
    job.run(once=True)
    return time.perf_counter() - began


def _medians(one: Sequence[dict[str, float]], two: Sequence[dict[str, float]]) -> Iterator[tuple[str, float]]:
    copying = "copying the outcomes"
    yield "one target", statistics.median(found["shop"] for found in one)
    yield "two targets, both jobs", statistics.median(found["shop"] + found["crm"] for found in two)
    yield "two targets, the slower job", statistics.median(max(found["shop"], found["crm"]) for found in two)
    yield f"one target, {copying}", statistics.median(found[copying] for found in one)
    yield f"two targets, {copying}", statistics.median(found[copying] for found in two)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--group", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warn_unless_quiet()
    found = together(given.units, given.rounds, given.group) if given.together else measured(given.units, given.rounds)
    if given.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name}: {value:.0f} us a unit")


if __name__ == "__main__":
    main()
