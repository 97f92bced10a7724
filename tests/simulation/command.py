"""The command line: runs seeds, tells of failures, and looks whether each mutation is found."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial

from simulation.aims import AIMS
from simulation.mutation import Mutation
from simulation.mutations import MUTATIONS, RARE
from simulation.running import run_seed
from simulation.shrink import shrink
from simulation.tested import TESTED
from simulation.world import Verdict

EACH = "each"
"""In the place of an aim: each second seed has an aim, all of them in turn."""

CHUNK = 10
"""Seeds that a worker process runs before it reports."""


def main(arguments: list[str] | None = None) -> int:
    """Runs what the command line says; returns 1 when a run failed, or a mutation was not found."""
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets of strings is part of a run
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "simulation", *(arguments or sys.argv[1:])])
    given = _parser().parse_args(arguments)
    if given.mutations is not None:
        return _mutations(given.mutations, given.jobs)
    if given.tested is not None:
        return _tested(given.tested)
    if given.trace:
        logging.getLogger("simulation").setLevel(logging.DEBUG)
        logging.basicConfig(level=logging.INFO, format="%(message)s")
    seeds = given.seed or range(given.first, given.first + given.seeds)
    return _seeds(seeds, given.jobs, given.shrink, given.aim, keep_going=given.keep_going)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seed", type=int, action="append", help="run this seed; may be given several times")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds")
    parser.add_argument("--aim", choices=(*AIMS, EACH), default="", help="aim each seed at a rare course of events")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--shrink", type=float, default=60.0, help="seconds to spend on reducing a failure")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    parser.add_argument("--trace", action="store_true", help="show Kainite's log")
    parser.add_argument("--mutations", nargs="*", metavar="NAME", help="switch safeguards off instead: all, or these")
    parser.add_argument("--tested", nargs="*", metavar="NAME", help="those that a test shows: all, or these")
    return parser


def _seeds(seeds: Iterable[int], jobs: int, seconds: float, aim: str, *, keep_going: bool) -> int:
    began, ran, failed = time.monotonic(), 0, 0
    for verdict in _verdicts(list(seeds), jobs, aim):
        ran += 1
        if verdict.problem is None:
            continue
        failed += 1
        _tell(verdict, seconds)
        if not keep_going:
            break
    took = time.monotonic() - began
    print(f"{ran} schedules in {took:.0f} s ({ran / max(took, 0.001):.1f} each second), {failed} failed")
    return 1 if failed else 0


def _run(seed: int, aim: str) -> Verdict:
    return run_quietly(seed, aim_of(seed) if aim == EACH else aim)


def aim_of(seed: int) -> str:
    """Returns the aim that a seed has in its turn; none for each second seed."""
    return "" if seed % 2 else tuple(AIMS)[seed // 2 % len(AIMS)]


def run_quietly(seed: int, aim: str = "") -> Verdict:
    """Runs a seed; what killed processes leave behind is collected now and then."""
    gc.disable()
    # A task that never began leaves the coroutine that it would have awaited.
    warnings.filterwarnings("ignore", message="coroutine .* was never awaited", category=RuntimeWarning)
    try:
        return run_seed(seed, aim=aim)
    finally:
        if seed % CHUNK == 0:
            gc.collect()


def _verdicts(seeds: list[int], jobs: int, aim: str) -> Iterator[Verdict]:
    run = partial(_run, aim=aim)
    if jobs <= 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, seeds, chunksize=CHUNK)


def _tell(verdict: Verdict, seconds: float) -> None:
    aim = f" --aim '{verdict.aim}'" if verdict.aim else ""
    print(f"seed {verdict.seed}: {verdict.problem}")
    print(f"  again: PYTHONPATH=tests python -m simulation --seed {verdict.seed}{aim} --trace")
    smallest, _ = shrink(verdict, seconds) if seconds else (verdict, frozenset())
    print(f"  {smallest.problem}, with {len(smallest.faults)} of {len(verdict.faults)} faults:")
    for at, name in smallest.faults:
        print(f"  {at:9.3f} s  {name}")
    for line in smallest.log:
        print(f"    log: {line}")
    sys.stdout.flush()


def _mutations(names: list[str], jobs: int) -> int:
    chosen = [one for one in (*MUTATIONS, *RARE) if one.name in names] if names else list(MUTATIONS)
    began, lost = time.monotonic(), 0
    for mutation, found in _found(chosen, jobs):
        lost += found is None
        where = "NOT FOUND" if found is None else f"seed {found.seed}"
        print(f"{mutation.name:28} within {mutation.within:5}: {where}")
        if found is not None:
            print(f"{'':28} {found.problem}")
        sys.stdout.flush()
    print(f"{len(chosen)} mutations in {time.monotonic() - began:.0f} s, {lost} not found")
    return 1 if lost else 0


def _tested(names: list[str]) -> int:
    chosen = [one for one in TESTED if not names or one.mutation.name in names]
    lost = 0
    for one in chosen:
        noticed = one.is_noticed()
        lost += not noticed
        print(f"{one.mutation.name:48} {'fails' if noticed else 'NOT NOTICED'}: {one.test}")
        sys.stdout.flush()
    print(f"{len(chosen)} safeguards, {lost} not noticed by their tests")
    return 1 if lost else 0


def _found(chosen: list[Mutation], jobs: int) -> Iterator[tuple[Mutation, Verdict | None]]:
    if jobs <= 1:
        yield from ((mutation, find(mutation)) for mutation in chosen)
        return
    with ProcessPoolExecutor(jobs) as pool:
        under_way = {pool.submit(find_named, mutation.name): mutation for mutation in chosen}
        yield from ((under_way[done], done.result()) for done in as_completed(under_way))


def find_named(name: str) -> Verdict | None:
    """Does as :func:`find` for the mutation of that name, which another process can be told."""
    return find(next(mutation for mutation in (*MUTATIONS, *RARE) if mutation.name == name))


def find(mutation: Mutation) -> Verdict | None:
    """Returns the first run that fails with the safeguard off, and only then, within the seeds that are stated."""
    for seed in mutation.seeds():
        with mutation.off():
            verdict = run_quietly(seed, mutation.aim)
        if verdict.problem is not None and run_quietly(seed, mutation.aim).problem is None:
            return verdict
    return None
