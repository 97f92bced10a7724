"""``tools/preflight`` on machines that lack something, played by small programs on the path."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

PREFLIGHT = Path(__file__).parents[2] / "tools" / "preflight"
PYTHON = 'case "$*" in *version_info*) exit {old};; *ensurepip*) exit {bare};; *) echo Python 3.9;; esac'
JAVA = "case $1 in -version) echo 'openjdk version \"{version}\"' >&2;; *) echo {module}@17;; esac"
VECTOR = "jdk.incubator.vector"


def machine(
    folder: Path, *, python: bool = True, old: int = 0, bare: int = 0, java: str = "17.0.15", module: str = VECTOR
) -> subprocess.CompletedProcess[str]:
    """Runs the check on a path that holds only sed, grep and the given programs."""
    for tool in ("sed", "grep"):
        (folder / tool).symlink_to(f"/bin/{tool}")
    if python:
        program(folder / "python3", PYTHON.format(old=old, bare=bare))
    if java:
        program(folder / "java", JAVA.format(version=java, module=module))
    return subprocess.run(
        ["/bin/sh", str(PREFLIGHT)], env={"PATH": str(folder)}, capture_output=True, text=True, timeout=30, check=False
    )


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("java", ["17.0.15", "21", "25.0.1-ea"])
def test_a_machine_that_has_everything_hears_nothing(tmp_path: Path, java: str) -> None:
    ended = machine(tmp_path, java=java)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def says(ended: subprocess.CompletedProcess[str], *words: str) -> bool:
    return ended.returncode == 1 and ended.stderr.count("\n") == 1 and all(word in ended.stderr for word in words)


def test_what_is_missing_is_said_in_one_line_with_how_to_get_it(tmp_path: Path) -> None:
    cases = {
        "no-python": (dict[str, object](python=False), ("Python 3.11", "python3-venv")),
        "old-python": ({"old": 1}, ("Python 3.9", "make PYTHON=")),
        "no-venv": ({"bare": 1}, ("venv module", "python3-venv")),
        "no-java": ({"java": ""}, ("Java 17", "openjdk-17-jre-headless")),
        "java-8": ({"java": "1.8.0_392"}, ("version 1,", "openjdk-17-jre-headless")),
        "java-11": ({"java": "11.0.2"}, ("version 11,", "openjdk-17-jre-headless")),
        "no-vector": ({"module": "java.base"}, (VECTOR,)),
    }
    for name, (lacks, words) in cases.items():
        folder = tmp_path / name
        folder.mkdir()
        ended = machine(folder, **lacks)  # type: ignore[arg-type]
        assert says(ended, *words), (name, ended)


def test_java_home_comes_first_as_in_spark(tmp_path: Path) -> None:
    machine(tmp_path)
    environment = {"PATH": str(tmp_path), "JAVA_HOME": "/nowhere"}
    ended = subprocess.run(["/bin/sh", str(PREFLIGHT)], env=environment, capture_output=True, text=True, check=False)

    assert says(ended, "Java 17")
