"""Builds sdist and wheel once a session, and installs the wheel outside the checkout, as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
LIMIT = 120.0

Build = Callable[[str], Path]
Install = Callable[[str], Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Gives a function that builds into a folder of that name, and returns the folder."""

    def built(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        command = [sys.executable, str(ROOT / "tools" / "dist.py"), str(folder)]
        subprocess.run(command, cwd=folder, capture_output=True, timeout=LIMIT, check=True)
        return folder

    return built


@pytest.fixture(scope="session")
def dist(build: Build) -> Path:
    """Gives the folder with sdist, wheel and their hashes."""
    return build("dist")


@pytest.fixture(scope="session")
def install(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Gives a function that installs the wheel with extras, and returns the folder of its commands.

    The folder of the wheel is the index. All other packages come out of uv's cache, which `make setup` has filled, and
    each is compared with its hash.
    """

    def installed(extras: str) -> Path:
        venv = tmp_path_factory.mktemp("venv")
        (sums,) = (line for line in (dist / "SHA256SUMS").read_text().splitlines() if line.endswith(".whl"))
        wanted = venv / "wanted.txt"
        version = next(dist.glob("*.whl")).name.split("-")[1]
        wanted.write_text(f"kainite{extras}=={version} --hash=sha256:{sums.split()[0]}\n")
        python = venv / "bin" / "python"
        hashes = ["--require-hashes", "--constraint", str(ROOT / "hashes.txt")]
        hashes += ["--build-constraint", str(ROOT / "hashes.txt")]
        for command in (
            ["venv", "--quiet", "--clear", "--allow-existing", "--python", sys.executable, str(venv)],
            ["pip", "install", "--quiet", "--offline", "--python", str(python), "--find-links", str(dist), *hashes,
             "--requirement", str(wanted)],
        ):  # fmt: skip
            ran = subprocess.run([str(UV), *command], capture_output=True, text=True, timeout=LIMIT, check=False)
            assert ran.returncode == 0, ran.stderr
        return venv / "bin"

    return installed


@pytest.fixture(scope="session")
def bare(install: Install) -> Path:
    """Gives the commands of an installation without extras."""
    return install("")


@pytest.fixture(scope="session")
def shard_host(install: Install) -> Path:
    """Gives the commands of a shard host with record processors."""
    return install("[processors]")


def run(command: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs an installed command in a folder that is no checkout, with nothing else of Python's on its path."""
    environment = {"PATH": f"{command.parent}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    environment |= {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    return subprocess.run(
        [str(command), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
