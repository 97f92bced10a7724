"""Folders with rows in them are named where other users may look into them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.settings import load
from kainite.settings.exposure.folders import open_folders

PLAIN = "applicationName=app\nstreamName=s\nexecutableName=cat\n"


def found(folder: Path, properties: str, **environment: str) -> list[str]:
    path = folder / "app.properties"
    path.write_text(PLAIN + properties)
    return [exposure.where for exposure in open_folders(load(path), environment)]


@pytest.fixture
def opened(tmp_path: Path) -> Path:
    folder = tmp_path / "opened"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


def test_the_audit_trails_folder(tmp_path: Path, opened: Path) -> None:
    assert found(tmp_path, "auditTrail=opened\n") == [f"auditTrail {opened}"]
    opened.chmod(0o700)
    assert not found(tmp_path, "auditTrail=opened\n")
    assert not found(tmp_path, "auditTrail=not-made-yet\n")
    assert not found(tmp_path, "auditTrail=s3://bucket/prefix\n")


def test_sparks_folders(tmp_path: Path, opened: Path) -> None:
    (tmp_path / "conf").mkdir()
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    defaults.write_text(f"# spark.local.dir /nowhere\nspark.local.dir   {opened}\n")
    target = "target=sqlite:///x\n"
    named = [f"spark.local.dir {opened}"]
    assert found(tmp_path, target, SPARK_LOCAL_DIRS=f"/nowhere,{opened}") == named
    assert found(tmp_path, target, SPARK_HOME=str(tmp_path)) == named
    assert found(tmp_path, target, SPARK_CONF_DIR=str(tmp_path / "conf")) == named
    assert not found(tmp_path, "", SPARK_LOCAL_DIRS=str(opened))  # no apply job
    opened.chmod(0o1777)  # as /tmp
    assert not found(tmp_path, target, SPARK_LOCAL_DIRS=str(opened))
    opened.chmod(0o700)
    assert not found(tmp_path, target, SPARK_LOCAL_DIRS=str(opened))
