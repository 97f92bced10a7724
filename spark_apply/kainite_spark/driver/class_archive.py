"""Finds and writes the archive of Spark's classes, with which Spark's JVM starts in half the processor time.

Without it the JVM reads some 8,000 classes out of 280 jars, parses and verifies each, at every start. The archive
(class-data sharing) holds them as the JVM keeps them in memory, and is mapped. It belongs to the installation:
:mod:`kainite_spark.driver.archive_classes` makes it once, in the folder of this Python's environment, so whoever can
write the archive can write Kainite as well.

States of the folder: no archive; the archive of these jars and this Java; an archive of others, whose name differs and
which nobody uses. An archive gets its name when it is on the disk, so a crash, also one of the machine, leaves at most
a file with another name. The name follows from the jars and from Java; beyond that the JVM compares versions, its class
path and each jar's size and time with the archive, and starts without it where something differs.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kainite.base.errors import SparkUnavailableError

FOLDER: Final = Path(sys.prefix, "share", "kainite")
"""Where the archive is, in the environment of this Python."""

_PREFIX: Final = "spark-classes-"
_SUFFIX: Final = ".jsa"

_NOT_SPLIT: Final = frozenset("\"'\\ \t\n")
"""Characters at which Spark may split its JVM's options."""


def spark_home() -> Path:
    """Returns the folder of Spark: ``SPARK_HOME``, or that of the installed PySpark.

    Raises:
        SparkUnavailableError: there is none.
    """
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise SparkUnavailableError("PySpark is not installed: install kainite[spark], or set SPARK_HOME")
    return Path(found.origin).parent


def java() -> Path | None:
    """Returns the Java that Spark runs: of JAVA_HOME, or else of the PATH; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(f"{home}/bin/java" if home else "java")
    return None if found is None else Path(found)


def archive_file(home: Path, runtime: Path, folder: Path = FOLDER) -> Path:
    """Returns where the archive for these jars and this Java is, or would be.

    Args:
        home: Spark's folder.
        runtime: the Java.
        folder: where archives are.
    """
    parts = [runtime.resolve(), *sorted((home / "jars").glob("*.jar"))]
    told = "\n".join(f"{part} {found.st_size} {int(found.st_mtime)}" for part in parts for found in (part.stat(),))
    return folder / f"{_PREFIX}{hashlib.sha256(told.encode()).hexdigest()[:16]}{_SUFFIX}"


def archive_options(home: Path, runtime: Path | None, folder: Path = FOLDER) -> tuple[str, ...]:
    """Returns the JVM's options for a start with the archive; none where there is no archive that fits."""
    if runtime is None or _NOT_SPLIT & set(str(folder)) or _has_configuration(home):
        return ()
    file = archive_file(home, runtime, folder)
    return (f"-XX:SharedArchiveFile={file}",) if file.is_file() else ()


def _has_configuration(home: Path) -> bool:
    """Returns whether Spark has a folder of settings in its class path: the JVM takes an archive only without one."""
    folder = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf")
    return folder.is_dir() and any(folder.iterdir())


def write_archive(
    classes: Path, class_path: str, options: Sequence[str], home: Path, runtime: Path, folder: Path = FOLDER
) -> Path:
    """Writes the archive, and deletes those of other jars; takes 20 s of processor time and half a gigabyte of memory.

    Args:
        classes: the JVM's list of the classes that a run has loaded.
        class_path: the class path of that run.
        options: its other options.
        home: Spark's folder.
        runtime: the Java.
        folder: where archives are.

    Raises:
        SparkUnavailableError: the JVM refuses, or the folder cannot be written.
    """
    file = archive_file(home, runtime, folder)
    begun = file.with_suffix(f".{os.getpid()}")
    # The archive is the same with less memory for objects, of which there are few.
    command = [str(runtime), *options, "-Xmx256m", "-Xshare:dump", "-Xlog:disable", "-Xlog:all=error:stderr"]
    command += [f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={begun}", "-cp", class_path]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not begun.is_file():
            told = (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2]
            raise SparkUnavailableError(f"Java makes no archive of Spark's classes: {told}")
        begun.chmod(0o644)
        _sync(begun)
        begun.replace(file)
    except OSError as error:
        raise SparkUnavailableError(f"no archive of Spark's classes can be written to {folder}: {error}") from error
    finally:
        begun.unlink(missing_ok=True)
    for other in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        if other != file:
            other.unlink(missing_ok=True)
    return file


def _sync(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
