"""Keeps the classes that a Spark driver loads in an archive: usage spark_classes.py FILE.

A JVM that gets the archive (``-XX:SharedArchiveFile``) starts Spark with half of the processor time, and the tests
start some hundred of them. Another JVM, other jars, or another folder of them ignore it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from pyspark import SparkConf, SparkContext

from kainite_demo.services import SHORT_LIVED_JVM
from kainite_spark.driver.session import configuration

WRITE_S: Final = 300.0
"""Seconds that the JVM may take to write the archive, at its end."""


def main(archive: Path) -> None:
    archive.unlink(missing_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = f'{SHORT_LIVED_JVM} -XX:ArchiveClassesAtExit="{archive}" -Xlog:cds*=off'
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = configuration("local[1]", "classes")
    context = SparkContext(conf=SparkConf().setAll(list(settings.items())))
    context.setLogLevel("OFF")
    context.parallelize([1, 2], 2).map(float).collect()
    gateway = context._gateway  # noqa: SLF001 - PySpark tells nobody else which process it is
    assert gateway is not None
    jvm = gateway.proc
    context.stop()
    jvm.stdin.close()
    jvm.wait(WRITE_S)
    if not archive.exists():
        print("kainite: this JVM keeps no archive of Spark's classes; tests go on without", file=sys.stderr)
        archive.touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
