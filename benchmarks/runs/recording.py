"""Runs benchmarks and keeps what they found: one JSON file a run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runs.figures import figures, parsed
from runs.machine import Commit, busy_share, commit_of, this_machine

ROOT = Path(__file__).parents[2]
FORMAT = 1


class BenchmarkError(Exception):
    """A benchmark failed; the text has the end of what it said."""


def record(benchmarks: Sequence[Path], folder: Path) -> Path:
    """Runs the benchmarks one after the other, prints their figures, and returns the file that has them all.

    The file is written after each benchmark, so that what was measured stays when a later benchmark fails.

    Args:
        benchmarks: the benchmarks' files.
        folder: gets the file, ``TIME-COMMIT.json``.

    Raises:
        BenchmarkError: a benchmark failed.
    """
    commit, began = commit_of(ROOT), datetime.now(UTC)
    run: dict[str, Any] = {
        "format": FORMAT, "began": began.isoformat(timespec="seconds"), "commit": asdict(commit),
        "machine": asdict(this_machine()), "benchmarks": {},
    }  # fmt: skip
    file = folder / f"{began:%Y%m%dT%H%M%S}-{_short(commit)}.json"
    folder.mkdir(parents=True, exist_ok=True)
    for benchmark in benchmarks:
        print(f"== {benchmark.stem}", flush=True)
        run["benchmarks"][benchmark.stem] = measured = _measured(benchmark)
        file.write_text(json.dumps(run, indent=1) + "\n")
        print(shown(figures(measured["found"])), flush=True)
    return file


def read(file: Path) -> Any:
    """Returns what :func:`record` wrote.

    Raises:
        BenchmarkError: the file does not exist, or is no such file.
    """
    try:
        run = json.loads(file.read_text())
        if run["format"] != FORMAT:
            raise ValueError(f"format {run['format']}")
        return run
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(f"{file} has no recorded run: {error}") from None


def output_of(python: Path | str, benchmark: Path, arguments: Sequence[str] = ()) -> str:
    """Runs a benchmark with ``--json`` and returns its standard output.

    Raises:
        BenchmarkError: it failed.
    """
    command = [str(python), str(benchmark), "--json", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"{benchmark.stem} ended with status {done.returncode}")
    return done.stdout


def shown(found: dict[str, float]) -> str:
    """Returns figures as lines for a person."""
    width = max(map(len, found), default=0)
    return "\n".join(f"{name:{width}}  {value:>14,.6g}" for name, value in found.items())


def _measured(benchmark: Path) -> dict[str, Any]:
    share, began = busy_share(), time.monotonic()
    found = parsed(output_of(sys.executable, benchmark))
    return {"seconds": round(time.monotonic() - began, 1), "busy_before": round(share, 3), "found": found}


def _short(commit: Commit) -> str:
    return commit.revision[:10] + ("-changed" if commit.changed else "")
