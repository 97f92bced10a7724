"""The files of localstack/, as far as they can be checked without it, and its tool on a poor machine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose

from kainite.settings import examine

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "localstack"


def compose() -> Any:
    return yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))


def test_the_compose_file_keeps_to_the_specification() -> None:
    parsed = PyCompose.from_json(json.dumps(compose()))
    for check in (parsed.validate, parsed.validate_networks, parsed.validate_volumes):
        check()

    assert parsed.service_names() == ["localstack", "target", "daemon", "apply"]


def test_everything_that_it_mounts_and_builds_from_is_there() -> None:
    services = compose()["services"].values()
    mounted = [volume.split(":")[0] for service in services for volume in service["volumes"]]
    built = [service["build"] for service in services if "build" in service]

    assert [path for path in mounted if not (FOLDER / path).exists()] == []
    assert [FOLDER / build["context"] / build["dockerfile"] for build in built] == [
        FOLDER / "../packaging/containers/daemon.Dockerfile",
        FOLDER / "../packaging/containers/apply.Dockerfile",
    ]


@pytest.mark.parametrize("service", ["daemon", "apply"])
def test_its_settings_are_sound(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in compose()["services"][service]["environment"].items():
        monkeypatch.setenv(name, value)

    found = examine(ROOT / "properties/localstack.properties")

    assert (found.problems, found.unknown) == ((), ())


def test_localstacks_pins_are_whole_and_without_addresses() -> None:
    pins = [line for line in (FOLDER / "requirements.txt").read_text().splitlines() if not line.startswith("#")]

    assert "localstack-core==4.14.0" in pins
    assert [pin for pin in pins if not re.fullmatch(r"[a-z0-9.-]+==[0-9a-z.]+", pin)] == []


def host(folder: Path, *arguments: str, programs: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Runs the tool on a machine whose path holds ``programs`` alone."""
    path = folder / "bin"
    path.mkdir()
    for program in programs:
        found = shutil.which(program)
        assert found is not None, program
        (path / program).symlink_to(found)
    environment = {"PATH": str(path), "HOME": str(folder), "KAINITE_LOCALSTACK_CACHE": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, "-m", "localstack.host", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("programs", "missing"),
    [((), "node"), (("node",), "npm"), (("node", "npm"), "java")],
)
def test_what_a_machine_lacks_is_said_in_a_line(tmp_path: Path, programs: tuple[str, ...], missing: str) -> None:
    ended = host(tmp_path, "start", programs=programs)

    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.startswith(f"kainite: {missing} is missing, LocalStack needs it; on Debian or Ubuntu: apt-get ")
    assert not (tmp_path / "cache").exists()


def test_stopping_what_does_not_run_is_no_error(tmp_path: Path) -> None:
    ended = host(tmp_path, "stop")

    assert (ended.returncode, ended.stderr) == (0, "kainite: no LocalStack ran\n")
