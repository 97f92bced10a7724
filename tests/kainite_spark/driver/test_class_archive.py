"""The archive of Spark's classes: when it fits, and when the JVM is started without it."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from kainite.base.errors import SparkUnavailableError
from kainite_spark.driver.class_archive import archive_file, archive_options, java, spark_home, write_archive


@pytest.fixture
def runtime() -> Path:
    found = java()
    assert found is not None
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Makes a Spark of one jar."""
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "spark" / "jars" / "a.jar", "w") as jar:
        jar.writestr("text", "some")
    return tmp_path / "spark"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archives"


def written(home: Path, runtime: Path, folder: Path) -> Path:
    classes = folder.parent / "classes"
    classes.write_text("java/lang/Object\njava/lang/String\n")
    return write_archive(classes, str(home / "jars" / "a.jar"), [], home, runtime, folder)


def test_without_an_archive_the_jvm_has_no_option_more(home: Path, runtime: Path, folder: Path) -> None:
    assert archive_options(home, runtime, folder) == ()
    assert archive_options(home, None, folder) == ()


def test_the_jvm_takes_the_archive_that_was_written(home: Path, runtime: Path, folder: Path) -> None:
    file = written(home, runtime, folder)

    (option,) = archive_options(home, runtime, folder)
    assert option == f"-XX:SharedArchiveFile={file}"
    # With -Xshare:on a JVM that cannot use the archive ends with an error.
    command = [str(runtime), option, "-Xshare:on", "-cp", str(home / "jars" / "a.jar"), "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each.name for each in folder.iterdir()] == [file.name]


def test_an_archive_is_on_the_disk_before_it_has_its_name(
    home: Path, runtime: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[int, list[Path]]] = []
    sync = os.fsync

    def noted(file: int) -> None:
        synced.append((os.fstat(file).st_ino, [*folder.glob("*.jsa")]))
        sync(file)

    monkeypatch.setattr(os, "fsync", noted)
    file = written(home, runtime, folder)
    assert synced == [(file.stat().st_ino, [])]


def test_other_jars_need_another_archive_which_takes_the_place_of_the_old_one(
    home: Path, runtime: Path, folder: Path
) -> None:
    old = written(home, runtime, folder)
    os.utime(home / "jars" / "a.jar", (1, 1))
    assert archive_options(home, runtime, folder) == ()

    new = written(home, runtime, folder)
    assert new != old
    assert list(folder.iterdir()) == [new]


def test_a_truncated_archive_does_not_keep_the_jvm_from_starting(home: Path, runtime: Path, folder: Path) -> None:
    file = written(home, runtime, folder)
    file.write_bytes(file.read_bytes()[:5000])

    command = [str(runtime), *archive_options(home, runtime, folder), "-cp", str(home / "jars" / "a.jar"), "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_spark_with_settings_in_its_class_path_starts_without_an_archive(
    home: Path, runtime: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(home, runtime, folder)
    configuration = home.parent / "etc"
    configuration.mkdir()
    monkeypatch.setenv("SPARK_CONF_DIR", str(configuration))
    assert archive_options(home, runtime, folder) != ()

    (configuration / "spark-defaults.conf").touch()
    assert archive_options(home, runtime, folder) == ()


def test_a_folder_whose_name_spark_would_split_is_left_out(home: Path, runtime: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my archives"
    written(home, runtime, folder)
    assert archive_options(home, runtime, folder) == ()


def test_what_java_refuses_is_told_and_leaves_no_file(home: Path, runtime: Path, folder: Path) -> None:
    with pytest.raises(SparkUnavailableError, match="Java makes no archive of Spark's classes: "):
        write_archive(home / "none", "", [], home, runtime, folder)
    assert list(folder.iterdir()) == []


def test_another_java_needs_another_archive(home: Path, runtime: Path, tmp_path: Path) -> None:
    other = tmp_path / "java"
    other.touch()
    assert archive_file(home, other) != archive_file(home, runtime)


def test_spark_is_the_installed_one_unless_the_environment_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert (spark_home() / "bin" / "spark-submit").is_file()
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert spark_home() == Path("/opt/spark")
