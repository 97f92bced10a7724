"""Starts Spark's JVM before PySpark is loaded, so that both go on beside each other.

PySpark's own ``launch_gateway`` starts the JVM only when PySpark is loaded, which takes half a second. It can also
connect to a JVM that somebody else has started, whose port and secret then stand in the environment. The JVM is started
as PySpark starts it: by ``spark-submit``, with the file into which the JVM writes its port and its secret when it
listens.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kainite.base.errors import SparkUnavailableError
from kainite_spark.driver.class_archive import spark_home

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_LOOK_S: Final = 0.02
"""Seconds between two looks whether the JVM listens."""


class JvmStart:
    """A JVM that starts.

    Args:
        settings: Spark's settings.
        output: the file descriptor for what the JVM prints.

    Raises:
        OSError: ``spark-submit`` cannot be run.
    """

    def __init__(self, settings: Mapping[str, str], output: int) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="kainite-"))
        self._told = self._folder / "gateway"
        command = [str(spark_home() / "bin" / "spark-submit")]
        for key, value in settings.items():
            command += ["--conf", f"{key}={value}"]
        command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        environment = {**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._told)}
        try:
            # The JVM watches its standard input, and ends with this process.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=environment, start_new_session=True
            )
        except BaseException:
            shutil.rmtree(self._folder)
            raise

    def connect(self) -> JavaGateway:
        """Waits until the JVM listens; returns PySpark's connection to it.

        Raises:
            SparkUnavailableError: the JVM has ended, or does not answer; it is not left.
        """
        from py4j.protocol import Py4JError
        from pyspark.java_gateway import launch_gateway

        with _in_environment(self._address()):
            try:
                gateway: JavaGateway = launch_gateway()  # type: ignore[no-untyped-call]
            except (Py4JError, OSError) as error:
                self._process.kill()
                self._process.communicate()
                raise SparkUnavailableError(f"Java gateway process does not answer: {error}") from error
        gateway.proc = self._process
        return gateway

    def _address(self) -> dict[str, str]:
        """Returns the JVM's port and secret, as PySpark looks for them in the environment."""
        try:
            while not self._told.is_file():
                if self._process.poll() is not None:
                    self._process.communicate()
                    raise SparkUnavailableError("Java gateway process exited before sending its port number")
                time.sleep(_LOOK_S)
            told = self._told.read_bytes()
        finally:
            shutil.rmtree(self._folder)
        port, length = struct.unpack_from(">ii", told)
        return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": told[8 : 8 + length].decode()}


@contextlib.contextmanager
def _in_environment(variables: Mapping[str, str]) -> Iterator[None]:
    os.environ.update(variables)
    try:
        yield
    finally:
        for variable in variables:
            del os.environ[variable]
