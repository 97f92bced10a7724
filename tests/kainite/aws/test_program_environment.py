"""The credentials that AWS's own library finds in a program with another profile, or with none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kainite.aws.program_environment import NO_PROFILE, program_environment

FIND = """
import botocore.session, json
found = botocore.session.Session().get_credentials()
print(json.dumps(found and found.access_key))
"""

PARENT = {
    "AWS_ACCESS_KEY_ID": "parent", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:9/credentials",
}  # fmt: skip


def found(profile: str | None, folder: Path, parent: dict[str, str] = PARENT) -> str | None:
    files = {"AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"), "AWS_CONFIG_FILE": str(folder / "config")}
    environment = program_environment(profile, {"HOME": str(folder), "PATH": "/usr/bin", **files, **parent})
    done = subprocess.run([sys.executable, "-c", FIND], env=environment, capture_output=True, check=True, timeout=60)
    key: str | None = json.loads(done.stdout)
    return key


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sections = (f"[{name}]\naws_access_key_id = {name}\naws_secret_access_key = s\n" for name in ("default", "child"))
    (tmp_path / "credentials").write_text("".join(sections))
    return tmp_path


def test_without_a_profile_a_program_has_the_credentials_of_its_parent(folder: Path) -> None:
    assert found(None, folder) == "parent"


@pytest.mark.parametrize("parent", [PARENT, {"AWS_PROFILE": "default"}])
def test_with_a_profile_it_has_those(folder: Path, parent: dict[str, str]) -> None:
    assert found("child", folder, parent) == "child"


@pytest.mark.parametrize("parent", [PARENT, {"AWS_PROFILE": "child"}, {}])
def test_with_none_it_finds_none_anywhere(folder: Path, parent: dict[str, str]) -> None:
    assert found(NO_PROFILE, folder, parent) is None
