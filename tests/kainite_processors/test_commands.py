"""The commands ``kainite-processor-…``: each starts its record processor, and names the extra that is missing."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

COMMANDS = {
    "aurora_dsql": "kainite-processor-aurora-dsql",
    "aws_dms": "kainite-processor-aws-dms",
    "debezium": "kainite-processor-debezium",
    "postgresql": "kainite-processor-postgresql",
}


def ended(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("command", COMMANDS.values())
def test_a_command_has_help_of_its_own(command: str) -> None:
    ran = ended(str(Path(sysconfig.get_path("scripts"), command)), "--help")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"Usage: {command} [OPTIONS]")
    assert "under kainite run" in " ".join(ran.stdout.split())


@pytest.mark.parametrize("function", COMMANDS)
def test_a_missing_library_is_said_in_a_line(function: str) -> None:
    program = (
        "import sys; sys.modules['amazon_kclpy'] = None; sys.argv[0] = '/opt/bin/processor'; "
        f"from kainite_processors.commands import {function}; {function}()"
    )
    ran = ended(sys.executable, "-c", program)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "processor: amazon_kclpy is missing: pip install 'kainite[processors]'\n"


def test_another_missing_module_is_an_error_of_its_own() -> None:
    program = (
        "import sys; sys.modules['kainite.processors.frame'] = None; "
        "from kainite_processors.commands import debezium; debezium()"
    )
    ran = ended(sys.executable, "-c", program)

    assert ran.returncode == 1
    assert "ModuleNotFoundError" in ran.stderr
    assert "pip install" not in ran.stderr
