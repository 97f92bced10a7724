"""Starts, watches and ends one LocalStack on this machine.

An instance is a folder ``CACHE/run/NAME``: LocalStack's root file system, home and temporary files,
and its log. Its processes are those whose environment names that folder. So no pid file can go stale,
and processes that a killed LocalStack left running are found too. All state is in memory or in the
folder; ``start`` begins with an empty folder.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import boto3
import psutil
from botocore.config import Config
from localstack.install import Installed, Say, SetUpError, locked

SERVICES = ("kinesis", "dynamodb", "s3", "cloudwatch", "cloudformation", "iam", "sts")
HEALTHY_LIMIT_S = 180.0
STOP_LIMIT_S = 10.0
_KILLS = 5
_MAIN = "localstack.runtime.main"

# LocalStack gives DynamoDB Local a Java agent that raises a limit on indexes, and downloads it. Kainite has no indexes.
_JAVA = """#!/bin/sh
for argument; do
    shift
    case $argument in -javaagent:*) ;; *) set -- "$@" "$argument" ;; esac
done
exec '{java}' "$@"
"""


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance, named by its folder, running or not."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def log(self) -> Path:
        return self.folder / "localstack.log"

    def endpoint(self) -> str | None:
        """Returns the instance's address, or None while its main process does not run."""
        for process in self._processes():
            if _MAIN in process.cmdline():
                return f"http://{process.environ()['GATEWAY_LISTEN']}"
        return None

    def start(self, installed: Installed, port: int, settings: Mapping[str, str], say: Say) -> str:
        """Starts the instance if it does not run, waits until it is healthy, and returns its address.

        Args:
            port: on the loopback interface; 0 for any free one.
            settings: LocalStack's configuration variables.

        Raises:
            SetUpError: the port is taken, or LocalStack does not get healthy.
        """
        with locked(self.folder / "lock"):
            endpoint = self.endpoint()
            if endpoint is None:
                self._end()
                endpoint = f"http://127.0.0.1:{_free(port)}"
                say(f"starting LocalStack at {endpoint}")
                self._launch(installed, endpoint, settings)
            self._wait_until_healthy(endpoint, say)
            return endpoint

    def stop(self) -> bool:
        """Ends all processes of the instance and removes what they wrote; returns False if none ran."""
        with locked(self.folder / "lock"):
            ran = self._end()
            shutil.rmtree(self.root, ignore_errors=True)
            self.log.unlink(missing_ok=True)
        return ran

    def _launch(self, installed: Installed, endpoint: str, settings: Mapping[str, str]) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self._lay_out(installed)
        with self.log.open("wb") as log:
            subprocess.Popen(
                [str(installed.python), "-m", _MAIN], cwd=self.folder, env=_environment(self.root, endpoint, settings),
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def _lay_out(self, installed: Installed) -> None:
        libraries = self.root / "usr/lib/localstack"
        java = self.root / "var/lib/localstack/lib/java/21/bin/java"
        for folder in (libraries.parent, java.parent, self.root / "tmp", self.root / "home"):
            folder.mkdir(parents=True)
        libraries.symlink_to(installed.libraries, target_is_directory=True)
        java.write_text(_JAVA.format(java=installed.java))
        java.chmod(0o755)

    def _wait_until_healthy(self, endpoint: str, say: Say) -> None:
        began = said = time.monotonic()
        while not _answers(f"{endpoint}/_localstack/health"):
            now = time.monotonic()
            if self.endpoint() is None or now - began > HEALTHY_LIMIT_S:
                raise SetUpError(f"LocalStack does not start: {_last_line(self.log)}; the whole log: {self.log}")
            if now - said > 5:
                said = now
                say(f"waiting for LocalStack ({now - began:.0f} s)")
            time.sleep(0.1)
        _wake(endpoint, self.log)
        say(f"LocalStack is healthy ({time.monotonic() - began:.0f} s)")

    def _end(self) -> bool:
        """Kills the instance's processes; returns whether there were any."""
        # SIGKILL: the state is thrown away, and an orderly end is slow. The main process may start others meanwhile.
        for attempt in range(_KILLS):
            processes = sorted(self._processes(), key=lambda process: process.pid)
            if not processes:
                return attempt > 0
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(processes, timeout=STOP_LIMIT_S)
        raise SetUpError(f"LocalStack in {self.folder} does not end: ps shows its processes, killed and still there")

    def _processes(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                if process.environ().get("FILESYSTEM_ROOT") == str(self.root):
                    yield process
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue


def _environment(root: Path, endpoint: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Returns an environment without the user's own settings, by which LocalStack writes below ``root`` only."""
    address = endpoint.removeprefix("http://")
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(root / "home"),
        "TMPDIR": str(root / "tmp"),
        "FILESYSTEM_ROOT": str(root),
        "OVERRIDE_IN_DOCKER": "0",
        "GATEWAY_LISTEN": address,
        "LOCALSTACK_HOST": address,
        "SERVICES": ",".join(SERVICES),
        "EAGER_SERVICE_LOADING": "0",
        "SKIP_SSL_CERT_DOWNLOAD": "1",
        "DISABLE_EVENTS": "1",
        "DNS_ADDRESS": "0",
        "DYNAMODB_IN_MEMORY": "1",
        "KINESIS_PERSISTENCE": "0",
        "KINESIS_LATENCY": "10",
        "KINESIS_SHARD_LIMIT": "10000",
        **settings,
    }


def _free(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            how = "choose another: make localstack LOCALSTACK_PORT=4567"
            raise SetUpError(f"port {port}: {error.strerror}; {how}") from None
        free: int = probe.getsockname()[1]
        return free


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _wake(endpoint: str, log: Path) -> None:
    """Calls Kinesis and DynamoDB once; raises SetUpError if one does not start."""
    # A service starts with its first call, and LocalStack's health does not show whether it can.
    config = Config(connect_timeout=5, read_timeout=120, retries={"total_max_attempts": 1})
    session = boto3.Session("test", "test", region_name="us-east-1")
    with ThreadPoolExecutor(2) as pool:
        kinesis: Future[object] = pool.submit(
            session.client("kinesis", endpoint_url=endpoint, config=config).list_streams
        )
        dynamodb: Future[object] = pool.submit(
            session.client("dynamodb", endpoint_url=endpoint, config=config).list_tables
        )
    for name, call in (("Kinesis", kinesis), ("DynamoDB", dynamodb)):
        if error := call.exception():
            raise SetUpError(f"LocalStack's {name} does not start: {error}; the whole log: {log}")


def _last_line(path: Path) -> str:
    lines: Sequence[str] = path.read_text(errors="replace").split("\n") if path.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it logged nothing")
