"""Makes the archive of Spark's classes for this installation: ``python -m kainite_spark.driver.archive_classes``.

Whoever installs Kainite runs it once, and again after a new Spark or Java. It starts Spark in local mode, runs a job as
micro-batches are run, and writes down the classes that the JVM has loaded by then.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from kainite.base.errors import KainiteError
from kainite_spark.driver.class_archive import FOLDER, java, spark_home, write_archive
from kainite_spark.driver.session import require_java, spark_context

if TYPE_CHECKING:
    from pyspark import SparkContext

_TASKS = 2


def archive_classes(folder: Path = FOLDER) -> Path:
    """Makes the archive in a folder; returns its file.

    Raises:
        SparkUnavailableError: Spark does not start, or the archive cannot be made.
    """
    require_java()
    home, runtime = spark_home(), java()
    assert runtime is not None
    with tempfile.TemporaryDirectory(prefix="kainite-") as noted:
        classes = Path(noted, "classes")
        noting = f"-XX:DumpLoadedClassList={classes}"
        with spark_context(f"local[{_TASKS}]", "kainite archive_classes", java_options=(noting,)) as context:
            _run_a_job(context)
            class_path, options = _command_line(context)
        options.remove(noting)
        return write_archive(classes, class_path, options, home, runtime, folder)


def _run_a_job(context: SparkContext) -> None:
    context.setJobGroup("kainite", "kainite archive_classes")
    context.parallelize(range(_TASKS), _TASKS).mapPartitions(list).collect()
    context.statusTracker().getJobIdsForGroup("kainite")


def _command_line(context: SparkContext) -> tuple[str, list[str]]:
    """Returns the class path of the context's JVM, and its options."""
    jvm = context._gateway.jvm  # type: ignore[union-attr]  # noqa: SLF001
    runtime = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    return runtime.getClassPath(), list(runtime.getInputArguments())


def main() -> None:
    """Makes the archive and tells where it is; exits with one line where it cannot be made."""
    try:
        file = archive_classes()
    except KainiteError as error:
        sys.exit(f"kainite: {error}")
    sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()
