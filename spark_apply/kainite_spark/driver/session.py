"""Starts the long-lived Spark session that micro-batches run on.

Any master will do. With a local master, a failed task is tried again (``local[N,4]``; Spark's own
default is one try), all ports are bound to the loopback address, and workers run this interpreter. The
JVM gets a process group of its own: Ctrl-C, or a TERM to this process's group, must end the apply job
after its micro-batch, not kill Spark before. The JVM watches its standard input and so ends with this process.

A task's closure holds the target's address and, where the settings name a static key, that key; the shuffle's files
hold deltas. With a master on other machines Spark's own authentication and encryption protect them, which the
operator turns on (docs/operations.md, *Secrets*); :func:`unprotected` says what is missing, and the start logs it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kainite.base.errors import SparkUnavailableError
from kainite.base.logs import event

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

TASK_TRIES = 4
_LOCAL = re.compile(r"local(?:\[(\*|\d+)\])?")

_LOG_FILE = Path(__file__).with_name("log4j2.properties")

_CONFIGURATION: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG_FILE.as_uri()}",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_LOCAL_CONFIGURATION: Mapping[str, str] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

# Spark takes these from the environment alone. Without the first, workers run the "python3" of the PATH.
_LOCAL_ENVIRONMENT: Mapping[str, str] = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


def configuration(master: str, name: str) -> dict[str, str]:
    """Returns Spark's settings for a master; the user's ``spark-defaults.conf`` may set all others.

    Args:
        master: a Spark master URL.
        name: shown as the application's name.
    """
    settings = {**_CONFIGURATION, "spark.app.name": name, "spark.master": master}
    if local := _LOCAL.fullmatch(master):
        settings["spark.master"] = f"local[{local[1] or 1},{TASK_TRIES}]"
    return {**settings, **(_LOCAL_CONFIGURATION if master.startswith("local") else {})}


def unprotected(master: str, settings: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the settings that a cluster lacks: tasks hold the target's address and AWS keys as the settings do.

    Args:
        master: a Spark master URL; all processes of a local one are on this machine.
        settings: Spark's settings in force.
    """
    if master.startswith("local"):
        return ()
    is_on = {name for name, value in settings.items() if value.lower() == "true"}
    encrypted = is_on & {"spark.network.crypto.enabled", "spark.ssl.rpc.enabled"}
    needed = ("spark.authenticate", "" if encrypted else "spark.network.crypto.enabled", "spark.io.encryption.enabled")
    return tuple(name for name in needed if name and name not in is_on)


def require_java() -> None:
    """Checks that Java is where Spark looks for it: in JAVA_HOME, or else on the PATH.

    Raises:
        SparkUnavailableError: Java is missing.
    """
    home = os.environ.get("JAVA_HOME")
    if shutil.which(f"{home}/bin/java" if home else "java") is None:
        where = f"JAVA_HOME={home}" if home else "PATH"
        raise SparkUnavailableError(
            f"Java 17 or newer is missing in {where} (PySpark needs it); "
            "on Debian or Ubuntu: apt-get install openjdk-17-jre-headless"
        )


@contextlib.contextmanager
def spark_context(master: str, name: str) -> Iterator[SparkContext]:
    """Gives a Spark context, which takes about 10 s to start.

    Raises:
        SparkUnavailableError: Spark cannot be started: no Java, or no such master.
    """
    require_java()
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    if master.startswith("local"):
        for variable, value in _LOCAL_ENVIRONMENT.items():
            os.environ.setdefault(variable, value)
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(configuration(master, name).items()))
    try:
        gateway = launch_gateway(conf, {"start_new_session": True})  # type: ignore[no-untyped-call]
        context = SparkContext(conf=conf, gateway=gateway)
    except (PySparkException, Py4JError, OSError) as error:
        first_line = str(error).strip().partition("\n")[0]
        raise SparkUnavailableError(
            f"Spark does not start with applyMaster={master}: {first_line}; it needs Java 17 or newer"
        ) from error
    if missing := unprotected(master, dict(context.getConf().getAll())):
        event(_LOG, logging.WARNING, "the target's password travels unprotected between Spark's machines",
              master=master, missing=", ".join(missing))  # fmt: skip
    try:
        yield context
    finally:
        with contextlib.suppress(
            Py4JError, OSError
        ):  # the JVM may be gone, and must not hide the error that ended the job
            context.stop()
            gateway.shutdown()
