"""botocore without awscrt: a fresh process's client, and what needs awscrt all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kainite.aws.without_crt import may_use_login

_PROGRAM = """
import sys
from kainite.aws.clients import client
from kainite.settings import AwsSettings
client("dynamodb", AwsSettings("us-east-1")).close()
print("awscrt" in sys.modules)
import awscrt.http
"""


@pytest.mark.parametrize(("profile", "loaded"), [("region = us-east-1", False), ("login_session = arn:x", True)])
def test_awscrt_is_loaded_for_logins_only(tmp_path: Path, profile: str, loaded: bool) -> None:
    (tmp_path / "config").write_text(f"[default]\n{profile}\n")
    environment = {
        "AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=False, timeout=90
    )
    assert (done.stdout, done.returncode) == (f"{loaded}\n", 0), done.stderr


def _files(folder: Path, credentials: str) -> dict[str, str]:
    return {"AWS_CONFIG_FILE": str(folder / "none"), "AWS_SHARED_CREDENTIALS_FILE": str(folder / credentials)}


def test_files_that_are_missing_name_no_login(tmp_path: Path) -> None:
    assert not may_use_login(_files(tmp_path, "none"))


def test_both_files_may_name_one(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[default]\nlogin_session = arn:x\n")
    assert may_use_login(_files(tmp_path, "credentials"))


def test_a_file_that_cannot_be_read_may_name_one(tmp_path: Path) -> None:
    assert may_use_login(_files(tmp_path, "."))
