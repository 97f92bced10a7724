"""A run of benchmarks leaves one file with the commit, the machine and the figures; a failed one keeps the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs.machine import Machine, commit_of, this_machine

ROOT = Path(__file__).parents[3]


def runs(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runs", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "benchmarks")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=110)


def benchmark(folder: Path, name: str, code: str) -> str:
    path = folder / f"{name}.py"
    path.write_text(f"import sys\nassert sys.argv[1:] == ['--json']\n{code}\n")
    return str(path)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    return tmp_path / "recorded"


def read(folder: Path) -> dict[str, Any]:
    (file,) = folder.iterdir()
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_a_run_is_recorded(tmp_path: Path, recorded: Path) -> None:
    one, other = benchmark(tmp_path, "one", "print('{\"rate\": 5}')"), benchmark(tmp_path, "other", "print('[2, 3]')")
    done = runs("record", one, other, "--folder", str(recorded))
    assert done.returncode == 0, done.stderr
    assert "rate" in done.stdout
    run = read(recorded)
    assert {name: each["found"] for name, each in run["benchmarks"].items()} == {"one": {"rate": 5}, "other": [2, 3]}
    assert run["commit"]["revision"] == commit_of(ROOT).revision
    assert Machine(**run["machine"]) == this_machine()
    assert all(0 <= each["busy_before"] <= 1 for each in run["benchmarks"].values())


def test_a_benchmark_that_fails_keeps_what_was_measured(tmp_path: Path, recorded: Path) -> None:
    good, bad = benchmark(tmp_path, "good", "print(1)"), benchmark(tmp_path, "bad", "sys.exit(3)")
    done = runs("record", good, bad, "--folder", str(recorded))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: bad ended with status 3"
    assert list(read(recorded)["benchmarks"]) == ["good"]


@pytest.mark.parametrize("turns", ["5", "17", "x"])
def test_too_few_turns_are_refused(turns: str) -> None:
    done = runs("compare", "HEAD", "HEAD", "benchmarks/log_codec.py", "--turns", turns)
    assert done.returncode == 2
    assert "--turns" in done.stderr


def test_a_commit_that_does_not_exist_is_refused() -> None:
    done = runs("compare", "no-such-commit", "HEAD", "benchmarks/log_codec.py")
    assert done.returncode == 1
    assert "no-such-commit" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_each_benchmark_looks_whether_the_machine_is_quiet(path: Path) -> None:
    assert "    warn_unless_quiet()\n" in path.read_text()


def test_a_recorded_run_becomes_a_table(tmp_path: Path, recorded: Path) -> None:
    status = benchmark(tmp_path, "commands", 'print(\'{"status": {"seconds": 0.25}}\')')
    assert runs("record", status, "--folder", str(recorded)).returncode == 0
    done = runs("table", *map(str, recorded.iterdir()))
    assert done.stdout.splitlines()[-1].endswith("| 0.25 |"), done.stderr


def test_a_file_that_is_no_recorded_run_is_named(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"format": 7}')
    assert runs("table", str(other)).stderr == f"error: {other} has no recorded run: format 7\n"
