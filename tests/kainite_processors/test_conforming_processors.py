"""The processors that ship implement the protocol: ``kainite conform`` finds no failure, with records that they read.

They share their frame, so one of them goes through all cases, the others through those that reach their own code.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from support.processor_child import PROCESSORS, command_of

OWN = [f"--case={name}" for name in ("one-record", "odd-keys", "empty-payload", "binary-payload", "odd-text", "large")]


@pytest.mark.parametrize(
    ("name", "cases"), [("debezium", []), ("aws_dms", OWN), ("aurora_dsql", OWN), ("postgresql_changes", OWN)]
)
def test_a_processor_conforms(name: str, cases: list[str]) -> None:
    folder = PROCESSORS / name
    tables = folder / "tables.json"
    checked = [*command_of(name), *(["--tables", str(tables)] if tables.exists() else [])]
    command = [sys.executable, "-m", "kainite", "conform", "--json", "--timeout", "60", *cases]
    command += ["--records", str(folder / "samples.jsonl"), "--", *checked]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(ran.stdout)
