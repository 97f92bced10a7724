"""Starts the long-lived Spark session that micro-batches run on.

Any master will do. With a local master, a failed task is tried again (``local[N,4]``; Spark's own
default is one try), all ports are bound to the loopback address, and workers run this interpreter. The
JVM gets a process group of its own: Ctrl-C, or a TERM to this process's group, must end the apply job
after its micro-batch, and must not kill Spark before. The JVM watches its standard input and so ends with this process.

A task's closure holds the target's address and, where the settings name a static key, that key; the shuffle's files
hold deltas. So other users of the host must neither connect nor look into the files. With a local master Spark
authenticates every connection by a secret that it makes at each start; the JVM and its workers make files that only
their user may read. With a master on other machines the operator turns Spark's authentication and encryption on
(docs/operations.md, *Secrets*); :func:`unprotected` says what is missing, and the start logs it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kainite.base.errors import SparkUnavailableError
from kainite.base.logs import event
from kainite_spark.driver.jvm_names import keep_names
from kainite_spark.driver.jvm_output import told_as_events
from kainite_spark.driver.spark_thread import SparkThread

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

TASK_TRIES = 4

TELL_START_S: Final = 15.0
"""Seconds after which a start that still goes on is logged."""

START_LIMIT_S: Final = 300.0
"""Seconds that a start may take; YARN and Kubernetes may queue an application."""

END_S: Final = 10.0
"""Seconds that Spark may take to stop."""

_LOCAL = re.compile(r"local(?:\[(\*|\d+)\])?")

_LOG_FILE = Path(__file__).with_name("log4j2.properties")

# The JVM only passes bytes on, in jobs of some milliseconds. With the optimizing compiler beside it, the first hundreds
# of micro-batches take twice the processor time, and so long as well.
_QUICK_COMPILER: Final = "-XX:TieredStopAtLevel=1"

_CONFIGURATION: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": f"{_QUICK_COMPILER} -Dlog4j2.configurationFile={_LOG_FILE.as_uri()}",
    "spark.python.daemon.module": "kainite_spark.executor.worker_daemon",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_LOCAL_CONFIGURATION: Mapping[str, str] = {
    "spark.authenticate": "true",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

# Spark takes these values from the environment alone. Without the first, workers run the "python3" of the PATH.
_LOCAL_ENVIRONMENT: Mapping[str, str] = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


def configuration(master: str, name: str) -> dict[str, str]:
    """Returns Spark's settings for a master; the user's ``spark-defaults.conf`` may set all other settings.

    Args:
        master: a Spark master URL.
        name: shown as the application's name.
    """
    settings = {**_CONFIGURATION, "spark.app.name": name, "spark.master": master}
    if local := _LOCAL.fullmatch(master):
        settings["spark.master"] = f"local[{local[1] or 1},{TASK_TRIES}]"
    return {**settings, **(_LOCAL_CONFIGURATION if master.startswith("local") else {})}


def local_parallelism(master: str) -> int | None:
    """Returns how many tasks a master that is this process runs at once; None for any other, and for its own kinds."""
    local = _LOCAL.fullmatch(master)
    if local is None:
        return None
    return (os.cpu_count() or 1) if local[1] == "*" else max(int(local[1] or 1), 1)


def unprotected(master: str, settings: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the protecting settings that a cluster lacks: its tasks hold the target's address and the AWS keys.

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
def spark_context(
    master: str, name: str, stop: threading.Event | None = None, python: str | None = None
) -> Iterator[SparkContext]:
    """Yields a Spark context, as :func:`spark_starting` does, once it has started."""
    with spark_starting(master, name, stop, python) as started:
        yield started()


@contextlib.contextmanager
def spark_starting(
    master: str, name: str, stop: threading.Event | None = None, python: str | None = None
) -> Iterator[Callable[[], SparkContext]]:
    """Starts Spark beside the caller; yields a function that waits for the Spark context, and returns it.

    The start takes some seconds; Spark waits 60 s for a master that does not answer.

    Args:
        master: a Spark master URL.
        name: shown as the application's name.
        stop: ends the wait for the start.
        python: the executors' Python; None means the one in Spark's settings, or in the environment.

    Raises:
        SparkUnavailableError: Spark cannot be started: no Java, no such master, or ``stop`` was set. The function
            raises it too.
    """
    require_java()
    _choose_python(master, python)
    spark = SparkThread()
    starting = spark.begin(partial(_start, master, name))

    def started() -> SparkContext:
        context, _ = spark.wait(starting, _StartWatch(master, stop or threading.Event()).look)
        if missing := unprotected(master, dict(context.getConf().getAll())):
            event(_LOG, logging.WARNING, "the target's password travels unprotected between Spark's machines",
                  master=master, missing=", ".join(missing))  # fmt: skip
        return context

    try:
        yield started
    finally:
        if not starting.done():  # nobody waits for it any more
            spark.begin(partial(_end_what_started, starting))
        elif starting.exception() is None:
            _end(spark, *starting.result())
        spark.close()


def _choose_python(master: str, python: str | None) -> None:
    """Sets the environment, from which alone Spark takes the Python of its workers."""
    if python is not None:
        os.environ["PYSPARK_PYTHON"] = python
    if master.startswith("local"):
        for variable, value in _LOCAL_ENVIRONMENT.items():
            os.environ.setdefault(variable, value)


def _start(master: str, name: str) -> tuple[SparkContext, JavaGateway]:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    _pass_no_numpy()
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(configuration(master, name).items()))
    try:
        with told_as_events() as output, _private_files():
            options = {"start_new_session": True, "stdout": output, "stderr": output}
            gateway = launch_gateway(conf, options)  # type: ignore[no-untyped-call]
    except (PySparkException, OSError) as error:
        raise _does_not_start(master, error) from error
    try:
        context = SparkContext(conf=conf, gateway=gateway)
        # If a standalone master does not answer, Spark stops the context and raises nothing.
        stopped = bool(context._jsc.sc().isStopped())  # noqa: SLF001
        keep_names(gateway.jvm)
    except (PySparkException, Py4JError, OSError, ValueError) as error:  # ValueError: the process has a context
        refusal = _does_not_start(master, error)  # the JVM tells what its error says
        _end_jvm(gateway)
        raise refusal from error
    if stopped:
        _stop(context, gateway)
        raise SparkUnavailableError(f"Spark does not start with applyMaster={master}: the master does not answer")
    if "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = context.getConf().get("spark.pyspark.python", context.pythonExec)
    return context, gateway


def _does_not_start(master: str, error: Exception) -> SparkUnavailableError:
    first_line = str(error).strip().partition("\n")[0]
    return SparkUnavailableError(
        f"Spark does not start with applyMaster={master}: {first_line}; it needs Java 17 or newer"
    )


def _pass_no_numpy() -> None:
    """Takes out what converts NumPy's values for the JVM: to look whether a value is one loads pandas, for seconds."""
    import pyspark.sql.types  # noqa: F401 - which adds them
    from py4j.protocol import INPUT_CONVERTER

    INPUT_CONVERTER[:] = [each for each in INPUT_CONVERTER if not type(each).__name__.startswith("Numpy")]


@contextlib.contextmanager
def _private_files() -> Iterator[None]:
    """Lets processes that are started meanwhile make files for their own user only."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


class _StartWatch:
    """Watches a start under way: logs that it takes long, and ends the wait when the apply job stops."""

    def __init__(self, master: str, stop: threading.Event) -> None:
        self._master = master
        self._stop = stop
        self._tell_at = TELL_START_S

    def look(self, seconds: float) -> None:
        if self._stop.is_set():
            raise SparkUnavailableError("stopped before Spark had started")
        if seconds >= START_LIMIT_S:
            raise SparkUnavailableError(f"Spark has not started with applyMaster={self._master} in {seconds:.0f} s")
        if seconds >= self._tell_at:
            self._tell_at *= 2
            event(_LOG, logging.WARNING, "waiting for Spark to start", master=self._master, seconds=round(seconds))


def _end_what_started(starting: Future[tuple[SparkContext, JavaGateway]]) -> None:
    """Ends a Spark that has started too late."""
    if starting.exception() is None:
        _stop(*starting.result())


def _stop(context: SparkContext, gateway: JavaGateway) -> None:
    from py4j.protocol import Py4JError

    # The JVM may be gone, and must not hide the error that ended the job.
    with contextlib.suppress(Py4JError, OSError):
        context.stop()
    _end_jvm(gateway)


def _end_jvm(gateway: JavaGateway) -> None:
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    # PySpark would keep the first JVM of a process for all later contexts, also when that JVM has ended.
    if SparkContext._gateway is gateway:  # noqa: SLF001
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001

    with contextlib.suppress(Py4JError, OSError):
        gateway.shutdown()
    with contextlib.suppress(OSError):
        gateway.proc.stdin.close()  # the JVM ends with its standard input
    gateway.proc.wait()


def _end(spark: SparkThread, context: SparkContext, gateway: JavaGateway) -> None:
    """Stops Spark; kills its JVM if the JVM does not answer."""

    def look(seconds: float) -> None:
        if seconds >= END_S:
            raise SparkUnavailableError("Spark did not stop")

    try:
        spark.call(partial(_stop, context, gateway), look)
    except SparkUnavailableError:
        event(_LOG, logging.WARNING, "Spark did not stop, its JVM is killed")
        gateway.proc.kill()
        gateway.proc.wait()
