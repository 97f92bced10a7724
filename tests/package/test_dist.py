"""Sdist and wheel are built byte for byte the same, of what git knows, and nothing else."""

from __future__ import annotations

import os
import re
import tarfile
import zipfile
from pathlib import Path

import pytest

from package.conftest import Build

pytestmark = pytest.mark.xdist_group("package")


def test_two_builds_are_equal_byte_for_byte(dist: Path, build: Build) -> None:
    before = os.umask(0o077)
    try:
        again = build("again")
    finally:
        os.umask(before)

    names = sorted(path.name for path in dist.iterdir())
    assert [name for name in names if not name.startswith("kainite-")] == [
        "SHA256SUMS",
        "constraints.txt",
        "hashes.txt",
    ]
    assert {name: (again / name).read_bytes() for name in names} == {name: (dist / name).read_bytes() for name in names}


def test_the_wheel_has_each_package_and_the_examples(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0] for name in names if not re.match(r"kainite-[^/]*\.(dist-info|data)/", name)} == {
        "kainite", "kainite_processors", "kainite_spark", "kainite_demo",
    }  # fmt: skip
    assert "kainite/examples/perl/markers.pl" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_the_sdist_has_what_an_installation_is_described_by(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}

    assert {"pyproject.toml", "constraints.txt", "hashes.txt", "LICENSE", "docs/install.md"} <= names
    assert not [name for name in names if name.startswith((".venv", "dist/", ".hypothesis"))]
